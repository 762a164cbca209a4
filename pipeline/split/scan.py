"""The exact scanner: where each event of a window of bytes begins and ends.

All of it is array work over the structural bytes (quotes, backslashes, braces):

    {"name":"a{","args":{"x":1}},{"name":"b"}
    ^                           ^ ^          ^
    depth 1 ...                 0 1          0      (a brace inside a string does not count)

Only braces nest here. Brackets need no counting: an event is a balanced ``{...}`` at depth 0, and
the JSON parser that reads it afterwards checks the rest. So a second ``[`` in the middle of a
file, or one that is never closed, costs nothing.

A closing quote that is followed by anything but ``, : ] }`` or white space breaks the grammar of
JSON. That is how a stray or missing quote shows itself at once, before it turns the rest of the
file inside out; the scan stops there and says where.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scan", "gap_bytes", "scan_window"]

Positions = NDArray[np.int64]

_QUOTE, _BACKSLASH, _OPEN, _CLOSE = b'"\\{}'
_STRUCTURAL = bytes(int(byte in b'"\\{}') for byte in range(256))
_AFTER_STRING = np.zeros(256, np.bool_)
_AFTER_STRING[list(b",:]} \t\r\n")] = True


@dataclass(frozen=True)
class Scan:
    """What a window holds; all positions are byte offsets into it.

    ``starts`` and ``ends`` (exclusive) delimit the complete events. ``args_starts`` and
    ``args_ends`` delimit the value of the ``args`` key where it is an object, one entry an event
    of ``args_events`` (indices into ``starts``). ``open_at`` is the start of an event that the
    window ends within, ``broken_at`` the first byte that cannot belong to a JSON document, and
    ``stray_at`` the first ``}`` with nothing to close; each is -1 where there is none. Nothing
    behind ``broken_at`` or ``stray_at`` was looked at.
    """

    starts: Positions
    ends: Positions
    args_events: Positions
    args_starts: Positions
    args_ends: Positions
    open_at: int
    broken_at: int
    stray_at: int

    def first(self, count: int) -> Scan:
        """The same with only the first events."""
        keep = self.args_events < count
        return replace(
            self,
            starts=self.starts[:count],
            ends=self.ends[:count],
            args_events=self.args_events[keep],
            args_starts=self.args_starts[keep],
            args_ends=self.args_ends[keep],
        )


def _unescaped(data: NDArray[np.uint8], positions: Positions) -> Positions:
    """Structural positions without backslashes and without the quotes they escape."""
    kinds = data[positions]
    slashes = positions[kinds == _BACKSLASH]
    if not len(slashes):
        return positions
    first_of_run = np.empty(len(slashes), np.bool_)
    first_of_run[0] = True
    np.not_equal(np.diff(slashes), 1, out=first_of_run[1:])
    run_start = np.maximum.accumulate(np.where(first_of_run, slashes, 0))
    keep = kinds != _BACKSLASH
    quotes = np.flatnonzero(kinds == _QUOTE)
    before = positions[quotes] - 1
    at = np.searchsorted(slashes, before)
    at[at == len(slashes)] = 0
    escaped = (slashes[at] == before) & ((before - run_start[at]) % 2 == 0)
    keep[quotes[escaped]] = False
    kept: Positions = positions[keep]
    return kept


def scan_window(window: bytes) -> Scan:
    """Find the events of ``window``, which begins between two events (or before the first)."""
    data = np.frombuffer(window, np.uint8)
    positions = np.flatnonzero(np.frombuffer(window.translate(_STRUCTURAL), np.bool_))
    positions = _unescaped(data, positions)
    kinds = data[positions]

    is_quote = kinds == _QUOTE
    quotes_so_far = np.cumsum(is_quote, dtype=np.int32)
    outside = (quotes_so_far & 1) == 0  # for a quote: it closes a string

    broken_at = -1
    closing = positions[is_quote & outside]
    follows = closing + 1
    follows = follows[follows < len(data)]
    wrong = np.flatnonzero(~_AFTER_STRING[data[follows]])
    if len(wrong):
        broken_at = int(follows[wrong[0]])
        cut = int(np.searchsorted(positions, broken_at))
        positions, kinds = positions[:cut], kinds[:cut]
        is_quote, outside = is_quote[:cut], outside[:cut]

    step = np.zeros(len(positions), np.int32)
    step[(kinds == _OPEN) & outside] = 1
    step[(kinds == _CLOSE) & outside] = -1
    depth = np.cumsum(step, dtype=np.int32)

    stray_at = -1
    below = np.flatnonzero(depth < 0)
    if len(below):
        cut = int(below[0])
        stray_at, broken_at = int(positions[cut]), -1
        positions, is_quote, outside = positions[:cut], is_quote[:cut], outside[:cut]
        step, depth = step[:cut], depth[:cut]

    starts = positions[(step == 1) & (depth == 1)]
    ends = positions[(step == -1) & (depth == 0)] + 1
    open_at = int(starts[len(ends)]) if len(starts) > len(ends) else -1
    starts = starts[: len(ends)]
    limit = int(ends[-1]) if len(ends) else 0
    args = _find_args(data, positions, is_quote & ~outside & (depth == 1), step, depth, limit)
    events = np.searchsorted(starts, args[0], "right") - 1
    return Scan(starts, ends, events, *args, open_at, broken_at, stray_at)


def _find_args(
    data: NDArray[np.uint8],
    positions: Positions,
    is_key_quote: NDArray[np.bool_],
    step: NDArray[np.int32],
    depth: NDArray[np.int32],
    limit: int,
) -> tuple[Positions, Positions]:
    """Where the objects behind the ``args`` keys begin and end (exclusive), up to ``limit``."""
    index = np.flatnonzero(is_key_quote)
    index = index[positions[index] + 7 < limit]
    for offset, byte in enumerate(b'args"', start=1):
        index = index[data[positions[index] + offset] == byte]
    # The next structural byte after the key's closing quote is the brace of the value; between
    # them there is only the colon and white space, or the value is no object.
    brace = index + 2
    brace = brace[brace < len(positions)]
    brace = brace[(step[brace] == 1) & (depth[brace] == 2)]
    value = positions[brace]
    gap = value - positions[brace - 1] - 1
    tight = (gap == 1) & (data[value - 1] == ord(":"))
    spaced = (gap == 2) & (data[value - 2] == ord(":")) & (data[value - 1] == ord(" "))
    plain = tight | spaced
    for at in np.flatnonzero(~plain):  # odd spacing; rare
        between = data[positions[brace[at] - 1] + 1 : value[at]].tobytes()
        plain[at] = between.strip() == b":"
    brace, value = brace[plain], value[plain]
    closes = np.flatnonzero((step == -1) & (depth == 1))
    close = np.searchsorted(closes, brace)
    inside = close < len(closes)
    ends = positions[closes[close[inside]]] + 1
    value = value[inside]
    return value[ends <= limit], ends[ends <= limit]


def gap_bytes(window: bytes, scan: Scan) -> tuple[NDArray[np.uint8], Positions]:
    """All bytes before, and between, the complete events, and the positions they stand at.

    The bytes after the last complete event are not among them.
    """
    gap_starts = np.concatenate([[0], scan.ends[:-1]]).astype(np.int64)
    lengths = scan.starts - gap_starts
    total = int(lengths.sum())
    shift = np.repeat(gap_starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    at = np.arange(total, dtype=np.int64) + shift
    return np.frombuffer(window, np.uint8)[at], at
