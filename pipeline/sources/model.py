"""What flows out of this room: a file to read, or one that is left alone and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["EVERYTHING", "Listing", "Skipped", "Source", "Unreadable"]


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
class Listing:
    """What of the files below a folder is looked at.

    With ``late_hours``, folders of hours in a bucket that are so much older than the newest are
    not listed again where the lake holds files of them. A file that changed less than
    ``settle_seconds`` ago is left for later. ``job_ended`` takes files that are still open
    (``.tmp``) whether or not the job left a mark that it has ended. ``retry_failed`` reads files
    again that could not be read before and have not changed since.
    """

    late_hours: float | None = None
    settle_seconds: float = 0.0
    job_ended: bool = False
    retry_failed: bool = True


EVERYTHING = Listing()
"""All files, but for those that are still open."""


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
