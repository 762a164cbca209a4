"""The quick way: cut where a document's own separator stands, and let the parser prove it right.

Most documents are written by one loop, so the bytes between two events are always the same, and
so are those before ``args``. Cutting at these literals is five times faster than counting
quotes and braces. It can be wrong (a list of objects inside ``args`` may hold the same literal),
but never unnoticed: a JSON parser reads a document from left to right and knows where a value
ends, so if a text ``{A},{B}`` is cut at a comma and both parts are valid objects, then they are
the very objects that parsing the whole would give. The same holds for ``{A, "args": {B}}`` cut
into ``{A}`` and ``{B}``. Whoever parses the lines therefore only has to say whether all of them
were valid; if not, the exact scanner does that stretch again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.split.layout import Layout, learn_layout, take_fields
from pipeline.split.lines import FIELDS, SCHEMA, places, view_array
from pipeline.split.scan import Scan
from pipeline.split.words import PADDING, stands_at

__all__ = ["Cut", "Pattern", "cut", "learn"]

_SAMPLE = 64
_LONGEST = 64
_WHITE = b" \t\r\n"
_GAP = re.compile(rb"\}([ \t\r\n,]*)\Z")
_MOST_UNUSUAL = 64
_LEARN_FROM = 8
_IS_WHITE = np.zeros(256, np.bool_)
_IS_WHITE[list(_WHITE)] = True


@dataclass(frozen=True)
class Pattern:
    """The literals of a document: between two events, at the start of an event, and from the
    comma to the value of ``args`` (None where events carry none).
    """

    gap: bytes
    opening: bytes
    args: bytes | None


def _common(texts: list[bytes]) -> bytes:
    shortest, longest = min(texts), max(texts)
    length = 0
    while length < min(len(shortest), len(longest)) and shortest[length] == longest[length]:
        length += 1
    return shortest[:length]


def learn(window: bytes, scan: Scan) -> Pattern | None:
    """The pattern that the last events of a scanned window were written in, None if there is none.

    Where ``args`` is not the last key the quick way cannot keep its text, so there is none either.
    """
    count = min(len(scan.starts), _SAMPLE)
    if count < 3:
        return None
    starts, ends = scan.starts[-count:].tolist(), scan.ends[-count:].tolist()
    gaps = {window[end:start] for end, start in zip(ends[:-1], starts[1:], strict=True)}
    if len(gaps) != 1:
        return None
    gap = gaps.pop()
    opening = _common([window[start : start + _LONGEST] for start in starts])
    # Indentation tells an event from an object inside it; in compact documents the first key does.
    indent = len(opening) - len(opening[1:].lstrip(_WHITE)) + 1
    if b"\n" in opening[:indent]:
        opening = opening[:indent]
    else:
        opening = opening[: opening.find(b":") + 1] or opening[:1]
    separator = b"}" + gap + opening
    if len(separator) > _LONGEST or (b"," not in gap and b"\n" not in gap):
        return None

    has_args = scan.args_events >= len(scan.starts) - count
    leads = set()
    for event, value, value_end in zip(
        scan.args_events[has_args].tolist(),
        scan.args_starts[has_args].tolist(),
        scan.args_ends[has_args].tolist(),
        strict=True,
    ):
        start = int(scan.starts[event])
        comma = window.rfind(b",", start, value)
        if window[value_end : int(scan.ends[event])].strip() != b"}" or comma < 0:
            return None
        leads.add(window[comma : value + 1])
    if len(leads) > 1 or any(len(lead) > _LONGEST for lead in leads):
        return None
    return Pattern(gap, opening, leads.pop() if leads else None)


def _find(data: NDArray[np.uint8], literal: bytes, braces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where ``literal``, which has an opening brace, stands in ``data``."""
    at = braces - literal.index(b"{")
    return at[stands_at(data, np.maximum(at, 0), literal) & (at >= 0)]


def _boundaries(
    block: bytes, data: NDArray[np.uint8], braces: NDArray[np.int64], pattern: Pattern
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Where events begin, and where the event before each of them ends.

    A gap may differ from the usual one here and there, as where two writers' output was joined.
    """
    starts = _find(data, pattern.opening, braces)
    before = b"}" + pattern.gap
    ends = starts - len(pattern.gap)
    usual = ends > 0
    usual[usual] = stands_at(data, ends[usual] - 1, before)
    unusual = np.flatnonzero(~usual)
    if len(unusual) > _MOST_UNUSUAL:
        return None
    keep = np.ones(len(starts), np.bool_)
    for index in unusual.tolist():
        start = int(starts[index])
        gap = _GAP.search(block, max(0, start - _LONGEST), start)
        keep[index] = gap is not None
        ends[index] = gap.start(1) if gap else 0
    return starts[keep], ends[keep]


def _last_brace(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the texts that end at the places end without white space."""
    ends = ends.copy()
    white = np.arange(len(ends))
    while len(white := white[_IS_WHITE[data[ends[white] - 1]]]):
        ends[white] -= 1
    return ends


@dataclass(frozen=True)
class Cut:
    """The events of a block, as ``FIELDS`` where they follow a layout, else as lines, both with
    ordinals and byte offsets from 0; how many bytes of the block they cover; and layouts that
    some of the lines are written in.
    """

    fields: pa.RecordBatch
    lines: pa.RecordBatch
    consumed: int
    layouts: tuple[Layout, ...]


def cut(block: bytes, until: int, pattern: Pattern, layouts: tuple[Layout, ...]) -> Cut | None:
    """Cut the first ``until`` bytes of ``block``, which begins with the gap before an event, at
    the pattern's literals; None where it does not follow the pattern.
    """
    data = np.zeros(until + PADDING, np.uint8)
    data[:until] = np.frombuffer(block, np.uint8, until)
    braces = np.flatnonzero(data == ord("{"))
    first = block.find(b"{")
    found = _boundaries(block, data, braces, pattern)
    if first < 0 or found is None or block[:first].strip(_WHITE + b","):
        return None
    following, ends = found
    following, ends = following[following > first], ends[following > first]
    if not len(ends):
        return None
    starts = np.concatenate([[first], following[:-1]])
    consumed = int(ends[-1])
    head_ends = ends.copy()
    args_starts = np.zeros(len(starts), np.int64)
    args_ends = np.zeros(len(starts), np.int64)
    has_args = np.zeros(len(starts), np.bool_)
    if pattern.args is not None:
        lead = _find(data, pattern.args, braces)
        lead = lead[(lead > first) & (lead < consumed)]
        event = np.searchsorted(starts, lead, "right") - 1
        has_args[event] = True
        head_ends[event] = lead + 1
        args_starts[event] = lead + len(pattern.args) - 1
        args_ends[event] = _last_brace(data, ends[event] - 1)
        data[lead] = ord("}")  # `{A, "args": {B}}` becomes `{A}` and `{B}`
    buffer = pa.py_buffer(data)

    def args_of(chosen: NDArray[np.int64]) -> pa.Array:
        return view_array(buffer, args_starts[chosen], args_ends[chosen], has_args[chosen])

    is_text = block.isascii() or _is_utf8(data)
    events, columns = take_fields(data, starts, head_ends, layouts if is_text else ())
    is_line = np.ones(len(starts), np.bool_)
    is_line[events] = False
    rest = np.flatnonzero(is_line)
    columns |= places(events, starts[events]) | {
        "args": pa.ExtensionArray.from_storage(pa.json_(), args_of(events).cast(pa.string()))
    }
    lines = {
        **places(rest, starts[rest]),
        "head": view_array(buffer, starts[rest], head_ends[rest]),
        "args": args_of(rest),
    }
    return Cut(
        pa.record_batch([columns[name] for name in FIELDS.names], schema=FIELDS),
        pa.record_batch([lines[name] for name in SCHEMA.names], schema=SCHEMA),
        consumed,
        _new_layouts(data, starts[rest], head_ends[rest], layouts),
    )


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    try:
        str(data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _new_layouts(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    known: tuple[Layout, ...],
) -> tuple[Layout, ...]:
    """Layouts of a few of the events that follow none that is known."""
    chosen = np.unique(np.linspace(0, len(starts) - 1, _LEARN_FROM).astype(np.int64))
    learned: dict[Layout, None] = {}
    for at in chosen.tolist() if len(starts) else ():
        layout = learn_layout(data[starts[at] : ends[at]].tobytes())
        if layout is not None and layout not in known:
            learned[layout] = None
    return tuple(learned)
