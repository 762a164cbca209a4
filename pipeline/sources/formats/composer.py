"""Composer's JSON traces: ``pid`` is the global rank of the process that wrote the event."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, no_metadata, rank_in_name

__all__ = ["FORMAT"]


def _claims_path(path: str) -> bool:
    return False


def _claims_text(path: str, text: bytes) -> bool:
    return b'"clock_sync_timestamp_us"' in text or b'"global_rank"' in text


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    return Identity(rank=rank_in_name(path))


FORMAT = Format("composer", _claims_path, _claims_text, _identify, no_metadata)
