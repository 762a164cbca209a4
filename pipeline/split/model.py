"""What the splitter knows of a document, and the blocks of events that it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["KEEP_REJECTS", "Block", "Progress", "Reject", "Window", "shown"]

_SHOWN = 200
KEEP_REJECTS = 100
"""How many rejected pieces of a document are kept with their text; all are counted."""


@dataclass(frozen=True)
class Reject:
    """A piece of a document that is no readable event."""

    byte_offset: int
    reason: str
    text: str


@dataclass(frozen=True)
class Window:
    """A scanned stretch of the document, kept until its events are read."""

    base: int
    seq: int
    data: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class Progress:
    """All that a splitter knows beside its buffer; a snapshot lets it go back."""

    seq: int = 0
    in_events: bool = False
    closed: bool = False
    empty_events: int = 0
    rejected: int = 0
    rejects: tuple[Reject, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A run of events as Arrow batches, and the bytes they came from.

    ``lines`` are of ``lines.SCHEMA``. Only a block that was cut by pattern has ``fields``, of
    ``lines.FIELDS``; it is right only if every line and all ``args`` parse. The block covers the
    first ``size`` bytes of ``text``, which stands at ``base``.
    """

    lines: tuple[pa.RecordBatch, ...]
    fields: pa.RecordBatch | None
    base: int
    text: bytes
    size: int
    before: Progress
    windows: tuple[Window, ...] = ()

    @property
    def first_seq(self) -> int:
        """Ordinal of the first event."""
        return self.before.seq

    @property
    def quick(self) -> bool:
        """Whether the block was cut by pattern."""
        return self.fields is not None

    def byte_offset(self, seq: int) -> int:
        """Where an event of a quick block begins in the document."""
        for batch in (*self.lines, self.fields):
            at = pc.index(batch["seq"], seq).as_py()
            if at >= 0:
                return int(batch["byte_offset"][at].as_py())
        raise IndexError(seq)

    @property
    def source(self) -> bytes:
        """The bytes that the block covers."""
        return self.text[: self.size]

    def text_of(self, seq: int) -> tuple[int, bytes]:
        """Byte offset in the document, and bytes, of an event of a block that is not quick."""
        window = next(w for w in reversed(self.windows) if w.seq <= seq)
        at = seq - window.seq
        start = int(window.starts[at])
        return window.base + start, window.data[start : int(window.ends[at])]


def shown(piece: bytes) -> str:
    """The first bytes of a piece as text."""
    return piece[:_SHOWN].decode("utf-8", "replace")
