"""A trace document as a stream of blocks of events, whatever state the document is in.

Three forms are told apart by their first bytes: an array ``[event, …``, an object with a
``traceEvents`` array among other keys, and lines (one event a line, no brackets). All of them may
end anywhere, be closed twice or never, and hold text between their events that is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.split import pattern as quick
from pipeline.split.layout import Layout
from pipeline.split.lines import SCHEMA, numbered, places, view_array
from pipeline.split.model import KEEP_REJECTS, Block, Progress, Reject, Window, shown
from pipeline.split.repair import mend_surrogates, repair
from pipeline.split.scan import Scan, gap_bytes, scan_window

__all__ = ["DocumentSplitter"]

_BLOCK = 4 << 20
_FIRST_WINDOW = 64 << 10
_SMALL_WINDOW = 16 << 10
_WINDOW = 1 << 20
_LONGEST_EVENT = 64 << 20
_LONGEST_HEADER = 64 << 20
_LONGEST_METADATA = 4 << 20
_MOST_LAYOUTS = 16
_LONGEST_EXACT = 64 << 20

_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(\[|null)')
_EVENT_START = re.compile(rb'(?<=[}\],\n])\s*\{\s*"')
_AFTER_ARRAY = re.compile(rb'\s*(\}|,\s*"|\Z)')
_GAP_TOKEN = re.compile(rb"[\s,]+|null|\[|\]|[^\s,\[\]]+")
_IS_GAP = np.zeros(256, np.bool_)
_IS_GAP[list(b" \t\r\n,")] = True


@dataclass(frozen=True)
class _Piece:
    """A stretch of the document that begins at ``base``: the first ``size`` bytes of ``text``;
    up to ``until`` there follows the separator before the next event.
    """

    base: int
    text: bytes
    size: int
    until: int

    @property
    def source(self) -> bytes:
        return self.text[: self.size]


@dataclass
class DocumentSplitter:
    """Splits the document that ``read(size)`` delivers; at most a few blocks are in memory.

    Call ``next_blocks`` until it gives none, then ``finish``. Where a line of a quick block did
    not parse, ``rewind`` goes back to it.

    ``keep`` is how many rejects are kept with their text; all are counted.
    """

    read: Callable[[int], bytes]
    block_size: int = _BLOCK
    keep: int = KEEP_REJECTS
    form: str = "lines"
    truncated: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    _progress: Progress = field(default_factory=Progress)
    _buffer: bytes = b""
    _base: int = 0
    _at: int = 0
    _returned: list[bytes] = field(default_factory=list)
    _ended: bool = False
    _window: int = _FIRST_WINDOW
    _header: bytes = b""
    _pattern: quick.Pattern | None = None
    _layouts: tuple[Layout, ...] | None = None
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

    def next_blocks(self, count: int, pool: Executor | None = None) -> list[Block]:
        """The next events, none when there are no more: up to ``count`` blocks that were cut by
        pattern, by the threads of ``pool``, or one that was scanned.
        """
        if not self._started:
            self._started = True
            self._start()
        self._step()
        if not self._progress.in_events:
            return []
        if self._pattern is not None and self._base >= self._exact_until:
            # The first block shows which layouts there are.
            pieces = self._pieces(self._pattern, count if self._layouts is not None else 1)
            blocks = self._cut(pieces, self._pattern, pool)
            if blocks:
                return blocks
        return [self._scan()]

    def _step(self) -> None:
        """Let go of the bytes before the current place."""
        self._buffer, self._base, self._at = self._buffer[self._at :], self._base + self._at, 0

    def _pieces(self, pattern: quick.Pattern, count: int) -> Iterator[_Piece]:
        """Take stretches of the document from the end of an event to the end of another."""
        separator = b"}" + pattern.gap + pattern.opening
        for _ in range(count):
            self._step()
            self._fill(self.block_size)
            at = self._buffer.rfind(separator, 0, self.block_size)
            if at < 0:
                break
            self._at = at + 1
            yield _Piece(self._base, self._buffer, self._at, at + len(separator))

    def _cut(
        self, pieces: Iterator[_Piece], pattern: quick.Pattern, pool: Executor | None
    ) -> list[Block]:
        """Cut the pieces, up to one that does not follow the pattern; it is taken back."""
        layouts = self._layouts or ()
        taken: list[_Piece] = []

        def cut_next(piece: _Piece) -> quick.Cut | None:
            return quick.cut(piece.text, piece.until, pattern, layouts)

        def noted() -> Iterator[_Piece]:
            for piece in pieces:
                taken.append(piece)
                yield piece

        # A pool begins with the first piece while the others are still being read.
        cuts = list((map if pool is None else pool.map)(cut_next, noted()))
        blocks: list[Block] = []
        for piece, cut in zip(taken, cuts, strict=True):
            if cut is None or cut.consumed != piece.size:
                self._take_back([piece.source for piece in taken[len(blocks) :]], piece.base)
                break
            before = self._progress
            fields, lines = (
                numbered(batch, 0, before.seq, piece.base) for batch in (cut.fields, cut.lines)
            )
            blocks.append(Block((lines,), fields, piece.base, piece.text, piece.size, before))
            events = fields.num_rows + lines.num_rows
            self._progress = replace(before, seq=before.seq + events)
            new = (layout for layout in cut.layouts if layout not in (self._layouts or ()))
            self._layouts = (*(self._layouts or ()), *new)[:_MOST_LAYOUTS]
        return blocks

    def _scan(self) -> Block:
        """The next block, scanned exactly."""
        before = self._progress
        self._fill(self.block_size)
        size = self.block_size
        if self._base < self._exact_until:
            size = min(size, self._exact_until - self._base)
        batches: list[pa.RecordBatch] = []
        windows: list[Window] = []
        while self._progress.in_events and self._at < size:
            batch = self._scan_next(windows)
            if batch is not None:
                batches.append(batch)
        source = self._buffer[: self._at]
        return Block(tuple(batches), None, self._base, source, len(source), before, tuple(windows))

    def _take_back(self, sources: list[bytes], base: int) -> None:
        """Have bytes that were taken, from ``base`` on, stand before all others again."""
        parts = [*sources, self._buffer[self._at :], *self._returned]
        self._returned = [part for part in parts if part]
        self._buffer, self._base, self._at = b"", base, 0

    def rewind(self, blocks: list[Block], seq: int) -> None:
        """Go back to the event ``seq``: the first, in a quick block, that did not parse.
        ``blocks`` are that block and all that were taken after it.

        All events before it are right, since a parser reads from left to right. From here on the
        exact scanner works for a while, for longer each time that this happens in a row.
        """
        first = blocks[0]
        byte_offset = first.byte_offset(seq)
        sources = [
            first.source[byte_offset - first.base :],
            *(block.source for block in blocks[1:]),
        ]
        self._take_back(sources, byte_offset)
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

    def _scan_next(self, windows: list[Window]) -> pa.RecordBatch | None:
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
        windows.append(Window(base, seq, window, scan.starts, scan.ends))
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
    columns = {
        **places(np.arange(seq, seq + len(scan.starts)), scan.starts + base),
        "head": view_array(pa.py_buffer(head), scan.starts, scan.ends),
        "args": view_array(pa.py_buffer(window), args_starts, args_ends, has_args),
    }
    return pa.record_batch([columns[name] for name in SCHEMA.names], schema=SCHEMA)
