"""Everything else that holds trace events: browsers, clang, Bazel, Node, viztracer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, no_metadata, rank_in_name

__all__ = ["FORMAT"]

_EMPTY = re.compile(rb"\[[\s\]{}]*$")


def _claims_path(path: str) -> bool:
    return False


def _claims_text(path: str, text: bytes) -> bool:
    return b'"ph"' in text or b'"traceEvents"' in text or _EMPTY.match(text) is not None


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    return Identity(rank=rank_in_name(path))


FORMAT = Format("chrome", _claims_path, _claims_text, _identify, no_metadata)
