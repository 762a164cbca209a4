"""What a format module gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Format", "Identity", "host_of", "no_metadata", "rank_in_name"]

_PID = re.compile(r"^\d+-(?=.)")
_RANK = re.compile(r"rank[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Identity:
    """Whose a trace is, as far as its name or its document tells; ``base_ns`` since the epoch.

    ``left_out`` are what they tell that makes no sense.
    """

    node: str | None = None
    rank: int | None = None
    base_ns: int | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A trace format.

    ``claims_path(path)`` knows a file by its path alone, ``claims_text(path, text)`` by its first
    bytes; ``identify(path, text, beside)`` reads node, rank and base from the path, the first
    bytes (empty if they were not needed) and the paths of the other files of the listing;
    ``from_metadata(metadata)`` reads them from the document's other keys, which win.
    """

    name: str
    claims_path: Callable[[str], bool]
    claims_text: Callable[[str, bytes], bool]
    identify: Callable[[str, bytes, Iterable[str]], Identity]
    from_metadata: Callable[[dict[str, Any]], Identity]


def no_metadata(metadata: dict[str, Any]) -> Identity:
    """For formats whose documents say nothing about themselves."""
    return Identity()


def rank_in_name(path: str) -> int | None:
    """The number behind ``rank`` in a file name, as in ``rank-3.json`` or ``trace_rank3_of_8``."""
    match = _RANK.search(path.rsplit("/", 1)[-1])
    return int(match.group(1)) if match else None


def host_of(node: str) -> str:
    """The host in smdebug's ``<pid>-<host>``; a plain name is one already."""
    return _PID.sub("", node)
