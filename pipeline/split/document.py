"""A trace document as a stream of blocks of events, whatever state the document is in.

Three forms are told apart by their first bytes: an array ``[event, …``, an object with a
``traceEvents`` array among other keys, and lines (one event a line, no brackets). All of them may
end anywhere, be closed twice or never, and hold text between their events that is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.split import pattern as quick
from pipeline.split.lines import lines_batch, view_array
from pipeline.split.repair import mend_surrogates, repair
from pipeline.split.scan import Scan, gap_bytes, scan_window

__all__ = ["KEEP_REJECTS", "Block", "DocumentSplitter", "Reject", "shown"]

_BLOCK = 4 << 20
_FIRST_WINDOW = 64 << 10
_SMALL_WINDOW = 16 << 10
_WINDOW = 1 << 20
_LONGEST_EVENT = 64 << 20
_LONGEST_HEADER = 64 << 20
_LONGEST_METADATA = 4 << 20
_LINES_IN_BATCH = 4096
_LONGEST_EXACT = 64 << 20
_SHOWN = 200
KEEP_REJECTS = 100
"""How many rejected pieces of a document are kept with their text; all are counted."""

_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(\[|null)')
_EVENT_START = re.compile(rb'(?<=[}\],\n])\s*\{\s*"')
_AFTER_ARRAY = re.compile(rb'\s*(\}|,\s*"|\Z)')
_GAP_TOKEN = re.compile(rb"[\s,]+|null|\[|\]|[^\s,\[\]]+")
_IS_GAP = np.zeros(256, np.bool_)
_IS_GAP[list(b" \t\r\n,")] = True


@dataclass(frozen=True)
class Reject:
    """A piece of a document that is no readable event."""

    byte_offset: int
    reason: str
    text: str


@dataclass(frozen=True)
class _Window:
    """A scanned stretch of the document, kept until its events are read."""

    base: int
    seq: int
    data: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class _Progress:
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
    """A run of events as Arrow batches of ``lines.SCHEMA``, and the bytes they came from.

    ``quick`` blocks were cut by pattern and are right only if every line parses.
    """

    batches: tuple[pa.RecordBatch, ...]
    quick: bool
    base: int
    source: bytes
    before: _Progress
    windows: tuple[_Window, ...] = ()

    @property
    def first_seq(self) -> int:
        """Ordinal of the first event."""
        return self.before.seq

    def text(self, seq: int) -> tuple[int, bytes]:
        """Byte offset in the document, and bytes, of an event of a block that is not quick."""
        window = next(w for w in reversed(self.windows) if w.seq <= seq)
        at = seq - window.seq
        start = int(window.starts[at])
        return window.base + start, window.data[start : int(window.ends[at])]


@dataclass
class DocumentSplitter:
    """Splits the document that ``read(size)`` delivers; at most a few blocks are in memory.

    Call ``next_block`` until it gives None, then ``finish``. Where a line of a quick block did
    not parse, ``rewind`` goes back to it.

    ``keep`` is how many rejects are kept with their text; all are counted.
    """

    read: Callable[[int], bytes]
    block_size: int = _BLOCK
    keep: int = KEEP_REJECTS
    form: str = "lines"
    truncated: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    _progress: _Progress = field(default_factory=_Progress)
    _buffer: bytes = b""
    _base: int = 0
    _at: int = 0
    _returned: list[bytes] = field(default_factory=list)
    _ended: bool = False
    _window: int = _FIRST_WINDOW
    _header: bytes = b""
    _pattern: quick.Pattern | None = None
    _exact_until: int = 0
    _exact_bytes: int = _WINDOW
    _started: bool = False

    @property
    def events_found(self) -> int:
        """Events that were cut out so far, the empty ones among them."""
        return self._progress.seq

    @property
    def empty_events(self) -> int:
        """Nulls among the events; ``{}`` are for the reader of the lines to count."""
        return self._progress.empty_events

    @property
    def rejected(self) -> int:
        """Pieces that are no events."""
        return self._progress.rejected

    @property
    def rejects(self) -> tuple[Reject, ...]:
        """The first ``keep`` of the rejected pieces."""
        return self._progress.rejects

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was put right in the structure of the document."""
        return self._progress.repairs

    def next_block(self) -> Block | None:
        """The next events, None when there are no more."""
        if not self._started:
            self._started = True
            self._start()
        self._buffer, self._base, self._at = self._buffer[self._at :], self._base + self._at, 0
        before = self._progress
        if not before.in_events:
            return None
        self._fill(self.block_size)
        if self._pattern is not None and self._base >= self._exact_until:
            block = self._buffer[: self.block_size]
            found = quick.cut(block, self._pattern, before.seq, self._base)
            if found is not None:
                batch, self._at = found
                self._progress = replace(before, seq=before.seq + batch.num_rows)
                return self._block((batch,), True, before)
        size = self.block_size
        if self._base < self._exact_until:
            size = min(size, self._exact_until - self._base)
        batches: list[pa.RecordBatch] = []
        windows: list[_Window] = []
        while self._progress.in_events and self._at < size:
            batch = self._scan_next(windows)
            if batch is not None:
                batches.append(batch)
        return self._block(tuple(batches), False, before, tuple(windows))

    def _block(
        self,
        batches: tuple[pa.RecordBatch, ...],
        is_quick: bool,
        before: _Progress,
        windows: tuple[_Window, ...] = (),
    ) -> Block:
        sliced = tuple(
            batch.slice(at, _LINES_IN_BATCH)
            for batch in batches
            for at in range(0, batch.num_rows, _LINES_IN_BATCH)
        )
        return Block(sliced, is_quick, self._base, self._buffer[: self._at], before, windows)

    def rewind(self, blocks: list[Block], seq: int, byte_offset: int) -> None:
        """Go back to the event ``seq`` at ``byte_offset``: the first, in a quick block, that did
        not parse. ``blocks`` are that block and all that were taken after it.

        All events before it are right, since a parser reads from left to right. From here on the
        exact scanner works for a while, for longer each time that this happens in a row.
        """
        first = blocks[0]
        source = first.source[byte_offset - first.base :]
        later = [block.source for block in blocks[1:]]
        taken_back = [source, *later, self._buffer[self._at :], *self._returned]
        self._returned = [part for part in taken_back if part]
        self._buffer, self._base, self._at = b"", byte_offset, 0
        self._progress = replace(first.before, seq=seq)
        self._exact_until = byte_offset + self._exact_bytes
        self._exact_bytes = min(self._exact_bytes * 2, _LONGEST_EXACT)

    def accepted(self, block: Block) -> None:
        """Tell that all lines of a block were read."""
        if block.quick:
            self._exact_bytes = _WINDOW

    def finish(self) -> None:
        """Read what follows the events; afterwards ``truncated`` and ``metadata`` are known."""
        if self.form == "object":
            self._finish_object()
        elif self.form == "array" and not self._progress.closed:
            self.truncated = True

    # -- reading ---------------------------------------------------------------------------

    def _fill(self, ahead: int) -> None:
        """Have ``ahead`` bytes from the current place in the buffer, or all there are."""
        missing = ahead - (len(self._buffer) - self._at)
        parts = [self._buffer]
        while missing > 0 and (part := self._next_part(missing)):
            parts.append(part)
            missing -= len(part)
        if len(parts) > 1:
            self._buffer = b"".join(parts)

    def _next_part(self, size: int) -> bytes:
        """Bytes that were taken back, then those of the document; none at its end."""
        while self._returned:
            if part := self._returned.pop(0):
                return part
        if self._ended:
            return b""
        part = self.read(max(size, _FIRST_WINDOW))
        self._ended = not part
        return part

    @property
    def _eof(self) -> bool:
        """Whether the buffer holds all that is left."""
        return self._ended and not self._returned

    def _start(self) -> None:
        self._fill(_FIRST_WINDOW)
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._at = 3
            self._note("byte order mark left out")
        while self._at < len(self._buffer) and self._buffer[self._at] in b" \t\r\n":
            self._at += 1
            if self._at == len(self._buffer):
                self._fill(_FIRST_WINDOW)
        first = self._buffer[self._at : self._at + 1]
        if first == b"[":
            self.form = "array"
            self._at += 1
        elif first == b"{":
            self._start_object()
        if first and self.form != "object":
            self._progress = replace(self._progress, in_events=True)

    def _start_object(self) -> None:
        """Decide between the object form and lines, and step behind ``"traceEvents": [``."""
        size = _FIRST_WINDOW
        while True:
            self._fill(size)
            window = self._buffer[self._at : self._at + size]
            scan = scan_window(window)
            first_end = int(scan.ends[0]) if len(scan.ends) else len(window)
            for match in _TRACE_EVENTS.finditer(window, 0, first_end):
                outer = scan_window(window[: match.start()] + b"}")
                if scan.broken_at >= 0 or len(outer.ends) == 1:
                    self.form = "object"
                    self._header = window[: match.start(1)][:_LONGEST_METADATA]
                    self._at += match.end()
                    is_array = match.group(1) == b"["
                    self._progress = replace(self._progress, in_events=is_array)
                    return
            if len(scan.ends) or scan.broken_at >= 0:
                return
            if self._eof or size >= _LONGEST_HEADER:
                if size >= _LONGEST_HEADER:
                    self._reject(self._at, window, "no traceEvents key in the first 64 MiB")
                self.truncated = True
                self._at = len(self._buffer)
                return
            size *= 2

    # -- the exact way ---------------------------------------------------------------------

    def _scan_next(self, windows: list[_Window]) -> pa.RecordBatch | None:
        """Scan one window and move behind its last complete event."""
        self._fill(self._window)
        window = self._buffer[self._at : self._at + self._window]
        final = self._eof and self._at + len(window) == len(self._buffer)
        scan = scan_window(window)
        if not len(scan.ends):
            self._no_event(window, scan, final)
            return None
        events = self._read_gaps(window, scan)
        base, seq = self._base + self._at, self._progress.seq
        if events < len(scan.ends):
            scan = _first_events(scan, events)
        else:
            self._at += int(scan.ends[-1])
            self._window = min(self._window * 2, _WINDOW)
        if not events:
            return None
        self._pattern = quick.learn(window, scan) or self._pattern
        self._progress = replace(self._progress, seq=seq + events)
        windows.append(_Window(base, seq, window, scan.starts, scan.ends))
        return _lines(window, scan, seq, base)

    def _read_gaps(self, window: bytes, scan: Scan) -> int:
        """Look at what stands before and between the events; returns how many events to take.

        Fewer than all where the array of the object form ends in this window; then the place is
        moved behind its bracket.
        """
        text, at = gap_bytes(window, scan)
        odd = at[~_IS_GAP[text]]
        if not len(odd):
            return len(scan.ends)
        for event in np.unique(np.searchsorted(scan.starts, odd)).tolist():
            start = int(scan.ends[event - 1]) if event else 0
            end = int(scan.starts[event])
            if self._read_gap(window[start:end], self._at + start, window[end:]):
                return int(event)
        return len(scan.ends)

    def _read_gap(self, gap: bytes, at: int, rest: bytes = b"") -> bool:
        """Take note of the tokens between two events; True where the events end here.

        ``at`` is the gap's place in the buffer.
        """
        for match in _GAP_TOKEN.finditer(gap):
            token = match.group()
            if token == b"null":
                empty = self._progress.empty_events + 1
                self._progress = replace(self._progress, empty_events=empty)
            elif token == b"]":
                follows = gap[match.end() :] + rest[:1]
                if self.form == "object" and _AFTER_ARRAY.match(follows):
                    self._progress = replace(self._progress, in_events=False, closed=True)
                    self._at = at + match.end()
                    return True
                self._progress = replace(self._progress, closed=True)
            elif token == b"[":
                self._note("a second array in the document")
                self._progress = replace(self._progress, closed=False)
            elif not token.strip(b", \t\r\n\v\f"):
                continue
            else:
                self._reject(at + match.start(), token, "text between events")
        return False

    def _no_event(self, window: bytes, scan: Scan, final: bool) -> None:
        """Move on where a window holds no complete event."""
        if scan.stray_at >= 0:
            if not self._read_gap(window[: scan.stray_at], self._at, window[scan.stray_at :]):
                self._reject(
                    self._at + scan.stray_at, b"}", "closing brace without an opening one"
                )
                self._at += scan.stray_at + 1
            return
        start = scan.open_at if scan.open_at >= 0 else len(window)
        if scan.broken_at >= 0 and scan.open_at < 0:
            start = scan.broken_at
        if self._read_gap(window[:start], self._at, window[start:]):
            return
        self._at += start
        if start == len(window):
            if final:
                self._end_events()
            return
        if scan.broken_at < start and not final and self._window < _LONGEST_EVENT:
            self._window *= 2
            return
        self._resync(final)

    def _resync(self, final: bool) -> None:
        """Give up the event at the current place and find the next one that can be read."""
        offset = self._at
        while True:
            piece = self._buffer[offset:]
            for match in _EVENT_START.finditer(piece, 1):
                start = piece.index(b"{", match.start())
                if _is_event(piece[start : start + _WINDOW]):
                    self._reject(offset, piece[:start].rstrip(b" \t\r\n,"), "not valid JSON")
                    self._at = offset + start
                    self._window = _SMALL_WINDOW
                    return
            if self._eof or len(piece) >= _LONGEST_EVENT:
                break
            self._fill(min(2 * len(piece), _LONGEST_EVENT))
        if self._eof and final:
            self.truncated = True
            self._note(f"the last event is cut off at byte {self._base + len(self._buffer)}")
        else:
            self._reject(offset, piece, "not valid JSON")
        self._at = len(self._buffer)
        if self._eof:
            self._end_events()

    def _end_events(self) -> None:
        self._progress = replace(self._progress, in_events=False)

    # -- what is not an event --------------------------------------------------------------

    def _finish_object(self) -> None:
        """Read the keys behind the events."""
        tail = self._buffer[self._at :]
        size, last = len(tail), tail.rstrip()[-1:]
        while part := self._next_part(self.block_size):
            size += len(part)
            last = part.rstrip()[-1:] or last
            if len(tail) <= _LONGEST_METADATA:
                tail += part
        self.truncated = self.truncated or last != b"}"
        if size > _LONGEST_METADATA or len(self._header) >= _LONGEST_METADATA:
            self._note(f"{size} bytes behind the events left out: over 4 MiB")
            return
        self._read_metadata(tail)

    def _read_metadata(self, tail: bytes) -> None:
        """Take the keys beside the events; what else stands there is rejected, with its place."""
        place = self._at
        whole = self._header + b"null" + tail
        arrays: list[int] = []  # of each object, the outermost last: its traceEvents keys

        def count_arrays(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            arrays.append(sum(key == "traceEvents" for key, _ in pairs))
            return dict(pairs)

        decoder = json.JSONDecoder(strict=False, object_pairs_hook=count_arrays)
        for text in (mend_surrogates(whole.decode("utf-8", "replace")), repair(whole)):
            try:
                self.metadata, end = decoder.raw_decode(text)
            except (ValueError, RecursionError):
                continue
            self.metadata.pop("traceEvents", None)
            if arrays[-1] > 1:
                self._reject(place, tail, "a second traceEvents in the document")
            if behind := text[end:].strip():
                at = place + len(tail) - len(text[end:].lstrip().encode())
                self._reject(at, behind.encode(), "text behind the end of the document")
            return
        if not self.truncated:
            self._reject(place, tail, "not valid JSON")
        try:
            self.metadata = json.loads(
                mend_surrogates((self._header + b"null}").decode("utf-8", "replace"))
            )
            self.metadata.pop("traceEvents", None)
        except (ValueError, RecursionError):
            self._note("metadata that cannot be read left out")

    def _note(self, repair: str) -> None:
        if repair not in self._progress.repairs:
            self._progress = replace(self._progress, repairs=(*self._progress.repairs, repair))

    def _reject(self, at: int, piece: bytes, reason: str) -> None:
        """Count a rejected piece that begins at ``at`` in the buffer."""
        kept = self._progress.rejects
        if len(kept) < self.keep:
            kept = (*kept, Reject(self._base + at, reason, shown(piece)))
        self._progress = replace(
            self._progress, rejected=self._progress.rejected + 1, rejects=kept
        )


def shown(piece: bytes) -> str:
    """The first bytes of a piece as text."""
    return piece[:_SHOWN].decode("utf-8", "replace")


def _is_event(text: bytes) -> bool:
    """Whether a readable event begins here."""
    scan = scan_window(text)
    if not len(scan.ends):
        return False
    try:
        event = json.loads(text[: int(scan.ends[0])].decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return False
    # An object inside the broken event must not be taken for the next one.
    return "Type" in event or ("ph" in event and ("ts" in event or event["ph"] == "M"))


def _first_events(scan: Scan, count: int) -> Scan:
    keep = scan.args_events < count
    return replace(
        scan,
        starts=scan.starts[:count],
        ends=scan.ends[:count],
        args_events=scan.args_events[keep],
        args_starts=scan.args_starts[keep],
        args_ends=scan.args_ends[keep],
    )


def _lines(window: bytes, scan: Scan, seq: int, base: int) -> pa.RecordBatch:
    """The events of a window as lines; a 0 is left where the value of args was."""
    edges = np.zeros(2 * len(scan.args_starts) + 2, np.int64)
    edges[1:-1:2], edges[2:-1:2], edges[-1] = scan.args_starts, scan.args_ends, len(window)
    in_args = np.repeat(np.arange(len(edges) - 1) % 2 == 1, np.diff(edges))
    head = np.where(in_args, np.uint8(ord(" ")), np.frombuffer(window, np.uint8))
    head[scan.args_starts] = ord("0")
    args_starts = np.zeros(len(scan.starts), np.int64)
    args_ends = np.zeros(len(scan.starts), np.int64)
    has_args = np.zeros(len(scan.starts), np.bool_)
    args_starts[scan.args_events] = scan.args_starts
    args_ends[scan.args_events] = scan.args_ends
    has_args[scan.args_events] = True
    return lines_batch(
        seq,
        scan.starts + base,
        view_array(pa.py_buffer(head), scan.starts, scan.ends),
        view_array(pa.py_buffer(window), args_starts, args_ends, has_args),
    )
