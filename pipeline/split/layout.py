"""Takes the fields of events by position, where a document writes them all in one layout.

A writer that prints every event with the same format string leaves the same bytes between the
values: ``{"ph": "X", "name": "``, then a name, ``", "ts": ``, then a number, and so on. Such a
``Layout`` is learned from an event that a regular expression took apart. Then thousands of events
are read at once, literal by literal and value by value, each step a few array operations: a
literal must stand where the value before it ended; a string goes to its next quote and must come
to it without a backslash or a control character; a number is a run of digits. That is what a JSON
parser does with such an event, so nothing is left to prove. What does not follow a layout to its
end stays a line, for the JSON parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.split.lines import FLOW_END_NEXT, PHASES, view_array
from pipeline.split.words import stands_at, text_ends, whole_numbers

__all__ = ["Layout", "learn_layout", "take_fields"]

_NAMES = {b"name": "name", b"cat": "category"}
_TEXT = {**_NAMES, b"id": "id"}
_NUMBERS = {b"ts": "ts_ns", b"dur": "dur_ns", b"pid": "pid", b"tid": "tid"}
_CONSTANT = (b"ph", b"s", b"bp")
_MEMBER = re.compile(
    rb'[ \t\r\n]*"([a-z]+)"[ \t\r\n]*:[ \t\r\n]*'
    rb'(?:"([^"\\\x00-\x1f]*)"|([0-9]+(?:\.[0-9]{1,3})?))[ \t\r\n]*([,}])'
)
_LONGEST_LITERAL = 256
# Thousands of these are nanoseconds that any sane base of a clock leaves in the range of BIGINT.
_LAST_US = 4_000_000_000_000_000
_LONGEST_US = 1_000_000_000_000_000


@dataclass(frozen=True)
class Layout:
    """Literals around the values of an event; ``columns[i]`` stands between ``literals[i]`` and
    ``literals[i + 1]``, with quotes around it if ``is_text[i]``. The phase is part of a literal.
    """

    phase: str
    literals: tuple[bytes, ...]
    columns: tuple[str, ...]
    is_text: tuple[bool, ...]


def learn_layout(head: bytes) -> Layout | None:
    """The layout of an event, whose JSON without ``args`` is ``head``; None if it has none.

    Events that begin or end something, metadata and counters have none: what they mean depends
    on others. Nor have those with keys that this module does not know.
    """
    if not head.startswith(b"{"):
        return None
    phase, binding = "", b""
    seen: set[bytes] = set()
    literals: list[bytes] = []
    columns: list[str] = []
    texts: list[bool] = []
    at, literal_start = 1, 0
    while member := _MEMBER.match(head, at):
        key = member.group(1)
        is_text = member.group(2) is not None
        at = member.end()
        if key in seen or (key in _NUMBERS and is_text) or (key in _NAMES and not is_text):
            return None
        seen.add(key)
        if key in _CONSTANT:
            if key == b"ph":
                phase = (member.group(2) or b"").decode("ascii", "replace")
            elif key == b"bp":
                binding = member.group(2) or b""
        elif column := _TEXT.get(key) or _NUMBERS.get(key):
            value_start, value_end = member.span(2 if is_text else 3)
            literals.append(head[literal_start:value_start])
            columns.append(column)
            texts.append(is_text)
            literal_start = value_end
        else:
            return None
        if member.group(4) == b"}":
            break
    else:
        return None
    literals.append(head[literal_start:])
    if phase == "f" and binding != b"e":
        phase = FLOW_END_NEXT
    if (
        head[at:].strip(b" \t\r\n")
        or phase not in PHASES
        or b"ts" not in seen
        or (phase == "X") != (b"dur" in seen)
        or any(len(part) > _LONGEST_LITERAL for part in literals)
    ):
        return None
    return Layout(phase, tuple(literals), tuple(columns), tuple(texts))


def take_fields(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    layouts: Sequence[Layout],
) -> tuple[NDArray[np.int64], dict[str, pa.Array]]:
    """Which of the events follow a layout, and their columns of ``lines.FIELDS`` but for the
    place and ``args``. ``data`` is UTF-8, ``data[starts[i]:ends[i]]`` an event without its
    ``args``; behind the last there are ``words.PADDING`` zero bytes.
    """
    count = len(starts)
    phases = np.full(count, -1, np.int8)
    numbers = {column: np.zeros(count, np.int64) for column in _NUMBERS.values()}
    has = {column: np.zeros(count, np.bool_) for column in (*_NUMBERS.values(), *_TEXT.values())}
    spans = {
        column: (numbers["ts_ns"].copy(), numbers["ts_ns"].copy()) for column in _TEXT.values()
    }
    rest = np.arange(count)
    for layout in layouts:
        rest = rest[phases[rest] < 0]
        opens = stands_at(data, starts[rest], layout.literals[0])
        events = rest[opens]
        at = starts[events] + len(layout.literals[0])
        for column, is_text, literal in zip(
            layout.columns, layout.is_text, layout.literals[1:], strict=True
        ):
            good = np.ones(len(events), np.bool_)
            if column in numbers:
                value_ends, values, good = _number(data, at, column)
                numbers[column][events] = values
            elif is_text:
                value_ends = text_ends(data, at)
            else:
                value_ends, _, good = whole_numbers(data, at)
            if column in spans:
                spans[column][0][events], spans[column][1][events] = at, value_ends
            # What does not follow leaves at once: its place means nothing any more.
            good &= stands_at(data, value_ends, literal)
            events, at = events[good], value_ends[good] + len(literal)
        events = events[at == ends[events]]
        phases[events] = PHASES.index(layout.phase)
        for column in layout.columns:
            has[column][events] = True
    return _columns(data, phases, numbers, spans, has)


def _number(
    data: NDArray[np.uint8], at: NDArray[np.int64], column: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Where the numbers end that begin at the places, what they are, and whether they are any.

    Ids are whole; times become thousandths, from up to three decimals.
    """
    ends, values, good = whole_numbers(data, at)
    if column in ("pid", "tid"):
        return ends, values, good
    good &= values < (_LAST_US if column == "ts_ns" else _LONGEST_US)
    values = values * 1000
    dotted = np.flatnonzero(data[ends] == ord("."))
    if len(dotted):
        places = ends[dotted] + 1
        decimals_end, decimals, _ = whole_numbers(data, places)
        digits = decimals_end - places
        good[dotted] &= (digits >= 1) & (digits <= 3)
        values[dotted] += decimals * 10 ** np.clip(3 - digits, 0, 3)
        ends[dotted] = decimals_end
    return ends, values, good


def _columns(
    data: NDArray[np.uint8],
    phases: NDArray[np.int8],
    numbers: dict[str, NDArray[np.int64]],
    spans: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]],
    has: dict[str, NDArray[np.bool_]],
) -> tuple[NDArray[np.int64], dict[str, pa.Array]]:
    """Make the columns of the events that have a phase."""
    buffer = pa.py_buffer(data)
    events = np.flatnonzero(phases >= 0)
    columns: dict[str, pa.Array] = {"ph": pa.array(PHASES).take(pa.array(phases[events]))}
    for column, (starts, ends) in spans.items():
        view = view_array(buffer, starts[events], ends[events], has[column][events])
        columns[column] = view.cast(pa.string())
    for column, values in numbers.items():
        columns[column] = pa.array(values[events], mask=~has[column][events])
    return events, columns
