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
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.split import pattern as quick
from pipeline.split.buffer import Buffer
from pipeline.split.layout import Layout
from pipeline.split.lines import numbered, scanned_lines
from pipeline.split.metadata import read_beside
from pipeline.split.model import KEEP_REJECTS, Block, Progress, Reject, Window, shown
from pipeline.split.scan import Scan, gap_bytes, scan_window

__all__ = ["DocumentSplitter"]

_BLOCK = 4 << 20
_FIRST_WINDOW = 64 << 10
_SMALL_WINDOW = 16 << 10
_SHORT_EVENT = 2 << 10
_FAR_LOOKS = 16
_DECODER = json.JSONDecoder(strict=False)
_LONGEST_REJECT = 64 << 10
_WINDOW = 1 << 20
_LONGEST_EVENT = 64 << 20
_LONGEST_HEADER = 64 << 20
_LONGEST_METADATA = 4 << 20
_MOST_LAYOUTS = 16
_LONGEST_EXACT = 64 << 20

_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(\[|null)')
_EVENT_START = re.compile(rb'(?<=[}\],\n])\s*\{\s*"')
_AFTER_ARRAY = re.compile(rb'\s*(\}|,\s*"|\Z)')
_WORD = rb"[^\s,\[\]]+"
_GAP_TOKEN = re.compile(
    rb"[\s,]+|null(?![^\s,\[\]])|\[|\]|" + _WORD + rb"(?:[ \t]+" + _WORD + rb")*"
)
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

    read: InitVar[Callable[[int], bytes]]
    block_size: int = _BLOCK
    keep: int = KEEP_REJECTS
    form: str = "lines"
    truncated: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    _progress: Progress = field(default_factory=Progress)
    _in: Buffer = field(init=False)
    _window: int = _FIRST_WINDOW
    _header: bytes = b""
    _pattern: quick.Pattern | None = None
    _layouts: tuple[Layout, ...] | None = None
    _exact_until: int = 0
    _exact_bytes: int = _WINDOW
    _started: bool = False

    def __post_init__(self, read: Callable[[int], bytes]) -> None:
        self._in = Buffer(read)

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
        self._in.step()
        if not self._progress.in_events:
            return []
        if self._pattern is not None and self._in.base >= self._exact_until:
            # The first block shows which layouts there are.
            pieces = self._pieces(self._pattern, count if self._layouts is not None else 1)
            blocks = self._cut(pieces, self._pattern, pool)
            if blocks:
                return blocks
        return [self._scan()]

    def _pieces(self, pattern: quick.Pattern, count: int) -> Iterator[_Piece]:
        """Take stretches of the document from the end of an event to the end of another."""
        separator = b"}" + pattern.gap + pattern.opening
        for _ in range(count):
            self._in.step()
            self._in.fill(self.block_size)
            at = self._in.text.rfind(separator, 0, self.block_size)
            if at < 0:
                break
            self._in.at = at + 1
            yield _Piece(self._in.base, self._in.text, self._in.at, at + len(separator))

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
                self._in.take_back([piece.source for piece in taken[len(blocks) :]], piece.base)
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
        self._in.fill(self.block_size)
        size = self.block_size
        if self._in.base < self._exact_until:
            size = min(size, self._exact_until - self._in.base)
        batches: list[pa.RecordBatch] = []
        windows: list[Window] = []
        while self._progress.in_events and self._in.at < size:
            batch = self._scan_next(windows)
            if batch is not None:
                batches.append(batch)
        source = self._in.text[: self._in.at]
        return Block(
            tuple(batches), None, self._in.base, source, len(source), before, tuple(windows)
        )

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
        self._in.take_back(sources, byte_offset)
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

    def _start(self) -> None:
        self._in.fill(_FIRST_WINDOW)
        if self._in.text.startswith(b"\xef\xbb\xbf"):
            self._in.at = 3
            self._note("byte order mark left out")
        while self._in.at < len(self._in.text) and self._in.text[self._in.at] in b" \t\r\n":
            self._in.at += 1
            if self._in.at == len(self._in.text):
                self._in.fill(_FIRST_WINDOW)
        first = self._in.text[self._in.at : self._in.at + 1]
        if first == b"[":
            self.form = "array"
            self._in.at += 1
        elif first == b"{":
            self._start_object()
        if first and self.form != "object":
            self._progress = replace(self._progress, in_events=True)

    def _start_object(self) -> None:
        """Decide between the object form and lines, and step behind ``"traceEvents": [``."""
        size = _FIRST_WINDOW
        while True:
            self._in.fill(size)
            window = self._in.text[self._in.at : self._in.at + size]
            scan = scan_window(window)
            first_end = int(scan.ends[0]) if len(scan.ends) else len(window)
            for match in _TRACE_EVENTS.finditer(window, 0, first_end):
                outer = scan_window(window[: match.start()] + b"}")
                if scan.broken_at >= 0 or len(outer.ends) == 1:
                    self.form = "object"
                    self._header = window[: match.start(1)][:_LONGEST_METADATA]
                    self._in.at += match.end()
                    is_array = match.group(1) == b"["
                    self._progress = replace(self._progress, in_events=is_array)
                    return
            if len(scan.ends) or scan.broken_at >= 0:
                return
            if self._in.at_end or size >= _LONGEST_HEADER:
                if size >= _LONGEST_HEADER:
                    self._reject(self._in.at, window, "no traceEvents key in the first 64 MiB")
                self.truncated = True
                self._in.at = len(self._in.text)
                return
            size *= 2

    # -- the exact way ---------------------------------------------------------------------

    def _scan_next(self, windows: list[Window]) -> pa.RecordBatch | None:
        """Scan one window and move behind its last complete event."""
        self._in.fill(self._window)
        window = self._in.text[self._in.at : self._in.at + self._window]
        final = self._in.at_end and self._in.at + len(window) == len(self._in.text)
        scan = scan_window(window)
        if not len(scan.ends):
            self._no_event(window, scan, final)
            return None
        base, seq = self._in.base + self._in.at, self._progress.seq
        events = self._read_gaps(window, scan)
        if events < len(scan.ends):
            scan = scan.first(events)
        else:
            self._in.at += int(scan.ends[-1])
            self._window = min(self._window * 2, _WINDOW)
        if not events:
            return None
        self._pattern = quick.learn(window, scan) or self._pattern
        self._progress = replace(self._progress, seq=seq + events)
        windows.append(Window(base, seq, window, scan.starts, scan.ends))
        return scanned_lines(window, scan, seq, base)

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
            if self._read_gap(window[start:end], self._in.at + start, window[end:]):
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
                    self._in.at = at + match.end()
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
            if not self._read_gap(window[: scan.stray_at], self._in.at, window[scan.stray_at :]):
                self._reject(
                    self._in.at + scan.stray_at, b"}", "closing brace without an opening one"
                )
                self._in.at += scan.stray_at + 1
            return
        start = scan.open_at if scan.open_at >= 0 else len(window)
        if scan.broken_at >= 0 and scan.open_at < 0:
            start = scan.broken_at
        if self._read_gap(window[:start], self._in.at, window[start:]):
            return
        self._in.at += start
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
        offset = search = self._in.at
        tried = 0
        while True:
            text = self._in.text
            unsure = len(text)
            for match in _EVENT_START.finditer(text, search + 1):
                start = text.index(b"{", match.start())
                # Among many false starts, one that goes on for long is hardly an event.
                if _is_event(text, start, _WINDOW if tried < _FAR_LOOKS else _SHORT_EVENT):
                    piece = text[offset : min(start, offset + _LONGEST_REJECT)]
                    self._reject(offset, piece.rstrip(b" \t\r\n,"), "not valid JSON")
                    self._in.at = start
                    self._window = _SMALL_WINDOW
                    return
                tried += 1
                if start + _SHORT_EVENT > len(text):
                    unsure = min(unsure, match.start())
            search = max(search, unsure - _SHORT_EVENT)
            size = len(text) - offset
            if self._in.at_end or size >= _LONGEST_EVENT:
                break
            self._in.fill(min(2 * size, _LONGEST_EVENT))
        if self._in.at_end and final:
            self.truncated = True
            self._note(f"the last event is cut off at byte {self._in.base + len(self._in.text)}")
        else:
            piece = self._in.text[offset : offset + _LONGEST_REJECT]
            self._reject(offset, piece, "not valid JSON")
        self._in.at = len(self._in.text)
        if self._in.at_end:
            self._end_events()

    def _end_events(self) -> None:
        self._progress = replace(self._progress, in_events=False)

    # -- what is not an event --------------------------------------------------------------

    def _finish_object(self) -> None:
        """Read the keys behind the events."""
        tail = self._in.text[self._in.at :]
        size, last = len(tail), tail.rstrip()[-1:]
        while part := self._in.next_part(self.block_size):
            size += len(part)
            last = part.rstrip()[-1:] or last
            if len(tail) <= _LONGEST_METADATA:
                tail += part
        self.truncated = self.truncated or last != b"}"
        if size > _LONGEST_METADATA or len(self._header) >= _LONGEST_METADATA:
            self._note(f"{size} bytes behind the events left out: over 4 MiB")
            return
        beside = read_beside(self._header, tail, self.truncated)
        for at, piece, reason in beside.wrong:
            self._reject(self._in.at + at, piece, reason)
        if beside.metadata is None:
            self._note("metadata that cannot be read left out")
        else:
            self.metadata = beside.metadata

    def _note(self, repair: str) -> None:
        if repair not in self._progress.repairs:
            self._progress = replace(self._progress, repairs=(*self._progress.repairs, repair))

    def _reject(self, at: int, piece: bytes, reason: str) -> None:
        """Count a rejected piece that begins at ``at`` in the buffer."""
        kept = self._progress.rejects
        if len(kept) < self.keep:
            kept = (*kept, Reject(self._in.base + at, reason, shown(piece)))
        self._progress = replace(
            self._progress, rejected=self._progress.rejected + 1, rejects=kept
        )


def _is_event(text: bytes, start: int, longest: int) -> bool:
    """Whether a readable event of at most ``longest`` bytes begins at a place."""
    for size in (_SHORT_EVENT, _SMALL_WINDOW, _WINDOW):
        if size > longest:
            break
        window = text[start : start + size]
        try:
            event, _ = _DECODER.raw_decode(window.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            if len(window) < size:
                break
            continue
        # An object inside the broken event must not be taken for the next one.
        return "Type" in event or ("ph" in event and ("ts" in event or event["ph"] == "M"))
    return False
