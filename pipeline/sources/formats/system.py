"""System metrics as JSON lines: ``system/incremental/[hour/]<s>.<node>.json``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, no_metadata

__all__ = ["FORMAT"]

_NAME = re.compile(r"(?:^|/)\d{9,}\.(?P<node>[^/]+?)\.json(?:\.|$)")
_PATH = re.compile(r"(?:^|/)system/(?:[^/]+/)*\d{9,}\.[^/]+\.json(?:\.gz|\.tmp)?$")
_NODE = re.compile(rb'"NodeId"\s*:\s*"([^"\\]+)"')


def _claims_path(path: str) -> bool:
    return _PATH.search(path) is not None


def _claims_text(path: str, text: bytes) -> bool:
    line = text.split(b"\n", 1)[0]
    return all(key in line for key in (b'"Dimension"', b'"Value"', b'"Timestamp"'))


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    match = _NAME.search(path)
    if match:
        return Identity(node=match.group("node"))
    found = _NODE.search(text)
    return Identity(node=found.group(1).decode("utf-8", "replace") if found else None)


FORMAT = Format("system", _claims_path, _claims_text, _identify, no_metadata)
