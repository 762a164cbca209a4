"""Composer's JSON traces: ``pid`` is the global rank of the process that wrote the event."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, no_metadata, rank_in_name

__all__ = ["FORMAT"]

_NAME = re.compile(r"(?:^|/)ep\d+-ba\d+-rank\d+\.json(?:\.gz)?$")
_SIGNS = (b'"clock_sync_timestamp_us"', b'"global_rank"', b'"name": "callback/')
"""Of these the first file of a process has one, whatever it is called."""


def _claims_path(path: str) -> bool:
    return _NAME.search(path) is not None


def _claims_text(path: str, text: bytes) -> bool:
    return any(sign in text for sign in _SIGNS)


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    return Identity(rank=rank_in_name(path))


FORMAT = Format("composer", _claims_path, _claims_text, _identify, no_metadata)
