"""Fields taken by position against a JSON parser; the array operations against plain Python."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.split import DocumentSplitter, pattern
from pipeline.split.layout import learn_layout
from pipeline.split.words import PADDING, stands_at, text_ends, whole_numbers
from tests.split.reading import read_rows

bytes_of_interest = st.lists(st.sampled_from(b'0123456789"\\,a\x1f \x7f\x80\xff'), max_size=60)


def padded(text: bytes) -> Any:
    return np.frombuffer(text + bytes(PADDING), np.uint8)


def is_end(byte: int) -> bool:
    return byte in b'"\\' or byte < 32


@given(bytes_of_interest)
def test_text_ends_are_at_the_first_byte_that_no_plain_text_has(some: list[int]) -> None:
    text = bytes(some)
    want = [
        next(
            (at for at in range(start, len(text)) if text[at] in b'"\\' or text[at] < 32),
            len(text),
        )
        for start in range(len(text))
    ]
    assert text_ends(padded(text), np.arange(len(text))).tolist() == want


@given(bytes_of_interest)
def test_whole_numbers_are_those_that_json_allows(some: list[int]) -> None:
    text = bytes(some)
    ends, values, good = whole_numbers(padded(text), np.arange(len(text)))
    for start in range(len(text)):
        digits = re.compile(rb"[0-9]*").match(text, start)
        assert digits is not None
        run = digits.group()
        is_number = 1 <= len(run) <= 16 and (len(run) == 1 or run[:1] != b"0")
        assert good[start] == is_number
        if is_number:
            assert (ends[start], values[start]) == (start + len(run), int(run))


@given(bytes_of_interest, st.binary(min_size=1, max_size=20))
def test_a_literal_stands_only_where_all_of_it_does(some: list[int], literal: bytes) -> None:
    text = bytes(some) + literal + bytes(some)
    found = stands_at(padded(text), np.arange(len(text) + PADDING), literal)
    whole = text + bytes(PADDING)
    assert np.flatnonzero(found).tolist() == [
        at for at in range(len(whole)) if whole[at : at + len(literal)] == literal
    ]


def rows_of(document: bytes) -> tuple[list[tuple[Any, ...]], DocumentSplitter]:
    columns = (
        "seq, ph, name, category, ts_ns, dur_ns, pid, tid, id, external_id, bytes, args::VARCHAR,"
        " status, reject"
    )
    return read_rows(document, 4096, columns, "TRUE")


PLAIN = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 8,\n'
    '    "ts": 1712195495519689.047, "dur": 3.5, "args": {"External id": 9,"bytes": 4}}'
)
names = st.sampled_from(
    ["a", "", "void at::kernel<4, float>(int, char*)", 'say \\"hi\\"', "tab\\t", "\\u00e9", "é🚀"]
) | st.text(st.characters(exclude_characters='"\\', exclude_categories=["C"]), max_size=40)
NUMBERS = """0 1 12.5 12.25 12.125 12.0625 1.9995 3e2 1.5e3 -4 -0.5 null 123456789012 01 "5" [1]
true 1712195495519689.047 99999999999999999 1e30"""
numbers = st.sampled_from(NUMBERS.split())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(names, numbers, numbers, numbers, numbers), min_size=1, max_size=30))
def test_fields_by_position_are_those_of_the_json_parser(
    some: list[tuple[str, str, str, str, str]],
) -> None:
    odd = [
        f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
        f'    "ts": {ts}, "dur": {dur}, "args": {{"External id": 1}}}}'
        for name, pid, tid, ts, dur in some
    ]
    document = ("[\n" + ",\n".join([*[PLAIN] * 600, *odd, *[PLAIN] * 100]) + "\n]").encode()
    quick, splitter = rows_of(document)
    assert splitter._layouts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern, "cut", lambda *arguments: None)
        exact, _ = rows_of(document)
    assert quick == exact
    assert len(quick) == 700 + len(some)
    assert quick[0][:11] == (
        0, "X", "aten::add", "cpu_op", 1712195495519689047, 3500, 7, 8, None, 9, 4
    )  # fmt: skip


FLOW = '{"ph": "s", "id": 74284, "pid": 3, "tid": 4, "ts": 5,\n    "cat": "ac2g", "name": "ac2g"}'


def test_layouts_of_several_kinds_of_events_are_learned() -> None:
    events = [
        PLAIN,
        FLOW,
        FLOW.replace('"s"', '"f", "bp": "e"'),
        PLAIN.replace(', "args": {"External', ', "args": {"external'),
    ]
    # Its arrow ends at the slice that begins next.
    events.append(FLOW.replace('"s"', '"f"'))
    rows, splitter = rows_of(("[\n" + ",\n".join(events * 400) + "\n]").encode())
    assert {layout.phase for layout in splitter._layouts or ()} == {"X", "s", "f", "f>"}
    assert len(rows) == 2000
    assert rows[1][1:9] == ("s", "ac2g", "ac2g", 5000, None, 3, 4, "74284")
    assert [row[1] for row in rows[:5]] == ["X", "s", "f", "X", "f>"]
    assert [row[9] for row in rows[-5:]] == [9, None, None, 9, None]


def test_a_short_event_at_the_end_of_a_block_may_open_like_a_long_one() -> None:
    long = '{"name": "op", "ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 1}'
    short = '{"name": "z", "ph": "i", "ts": 1}'
    events = [*[long] * 1000, *[long, short] * 4000]
    rows, splitter = rows_of(json.dumps([json.loads(e) for e in events], indent=8).encode())
    assert len(splitter._layouts or ()) == 2
    assert [row[1] for row in rows] == ["X"] * 1000 + ["X", "i"] * 4000


def test_the_text_of_args_does_not_depend_on_the_way_it_was_read() -> None:
    event = {"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"stream": 1}}
    rows, splitter = rows_of(json.dumps([event] * 1500, indent=4).encode())
    assert splitter._layouts
    assert {row[11] for row in rows} == {'{\n            "stream": 1\n        }'}


@pytest.mark.parametrize("number", ["007", "18446744073709551615", "1.5", "-1", "null", '"x"'])
def test_odd_ids_are_left_to_the_json_parser(number: str) -> None:
    events = [*[FLOW] * 900, FLOW.replace("74284", number), FLOW]
    rows, _ = rows_of(("[\n" + ",\n".join(events) + "\n]").encode())
    want = {"007": None, '"x"': "x", "null": None}.get(number, number)
    assert [row[8] for row in rows[-3:]] == ["74284", want, "74284"]
    assert (rows[-2][13] or "").startswith("not valid JSON") == (number == "007")


@pytest.mark.parametrize(
    "head",
    [
        '{"ph": "B", "name": "a", "ts": 1}',
        '{"ph": "M", "name": "process_name", "ts": 1}',
        '{"ph": "C", "name": "memory", "ts": 1}',
        '{"ph": "X", "name": "a", "ts": 1}',
        '{"ph": "X", "name": "a", "name": "b", "ts": 1, "dur": 1}',
        '{"ph": "X", "name": "a", "ts": "1", "dur": 1}',
        '{"ph": "X", "name": 5, "ts": 1, "dur": 1}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "tts": 2}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": 0}',
        '{"ph": "n", "name": "a", "ts": 1, "id2": {"local": "1"}}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1} x',
        '{"ph": "X",\x0b"name": "a", "ts": 1, "dur": 1}',
        "[]",
    ],
)
def test_events_that_need_a_closer_look_have_no_layout(head: str) -> None:
    assert learn_layout(head.encode()) is None
