"""What flows out of this room: a file to read, or one that is left alone and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Skipped", "Source", "Unreadable"]


@dataclass(frozen=True)
class Source:
    """One trace document: where it is, what it is, and whose it is.

    ``uri`` is its name in the ledger; ``fs`` and ``path`` are how fsspec reaches it, ``member``
    the name inside a zip archive. ``base_ns`` is the start of its clock in nanoseconds since the
    epoch where its name or a file beside it tells. ``node`` is None until the document tells.
    """

    uri: str
    fs: Any
    path: str
    format: str
    run: str
    node: str | None
    rank: int | None
    size_bytes: int
    fingerprint: str
    base_ns: int | None = None
    member: str | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that is not read, and the reason."""

    uri: str
    reason: str


@dataclass(frozen=True)
class Unreadable:
    """A file that could not even be opened, and the reason; its format is ``unknown``."""

    source: Source
    reason: str
