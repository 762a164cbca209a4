"""The splitter against a reference that takes documents apart one character at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline
from tests.split.reading import read_rows

text = st.text(st.sampled_from('ab{}[]",:\\ \n\u00e9\U0001f680'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"ph": st.just("X"), "name": text, "ts": st.integers(0, 10**6), "dur": st.integers(0, 100)},
    optional={"args": st.dictionaries(text, values, max_size=3), "cat": text},
)


def read_all(document: bytes, block_size: int = 512) -> tuple[list[dict[str, Any]], Any]:
    """Split and parse a document as ingest does; the events in order, and the splitter."""
    rows, splitter = read_rows(
        document,
        block_size,
        "name, category, ts_ns, dur_ns, args::VARCHAR",
        "status IS NULL AND reject IS NULL",
    )
    return [
        {
            "name": name,
            "cat": cat,
            "ts": ts // 1000,
            "dur": dur // 1000,
            "args": None if args is None else json.loads(args),
        }
        for name, cat, ts, dur, args in rows
    ], splitter


def expected(event: dict[str, Any]) -> dict[str, Any]:
    return {key: event.get(key) for key in ("name", "cat", "ts", "dur", "args")}


def written(events: list[Any], style: int, form: int) -> bytes:
    """A document in one of the styles and forms that writers use."""
    indent, separators = [(None, (",", ":")), (None, None), (2, None), (1, None)][style]
    if form == 0:
        return json.dumps(events, indent=indent, separators=separators).encode()
    if form == 1:
        whole = {"schemaVersion": 1, "note": '"traceEvents": [', "traceEvents": events, "z": [{}]}
        return json.dumps(whole, indent=indent, separators=separators).encode()
    lines = [json.dumps(event, separators=separators) for event in events]
    return ("[\n" + ",\n".join(lines) + ("\n]" if form == 2 else ",\n")).encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(events, min_size=1, max_size=40), st.integers(0, 3), st.integers(0, 3))
def test_every_event_of_every_form_is_found(
    some: list[dict[str, Any]], style: int, form: int
) -> None:
    got, splitter = read_all(written(some, style, form))
    assert got == [expected(event) for event in some]
    assert splitter.truncated is (form == 3)
    assert splitter.rejected == 0


def complete_events(document: bytes) -> int:
    """How many events are complete in a cut array, counted one character at a time."""
    depth, quoted, escaped, complete = 0, False, False, 0
    for char in document.decode("utf-8", "replace"):
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = char == "\\", char != '"'
        elif char == '"':
            quoted = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            complete += depth == 0
    return complete


@settings(max_examples=60, deadline=None)
@given(st.lists(events, min_size=3, max_size=12), st.integers(0, 3), st.floats(0, 1))
def test_every_complete_event_of_a_cut_document_is_kept(
    some: list[dict[str, Any]], style: int, where: float
) -> None:
    whole = written(some, style, 0)
    cut = whole[: 1 + int(where * (len(whole) - 2))]
    got, splitter = read_all(cut)
    assert got == [expected(event) for event in some[: complete_events(cut)]]
    assert splitter.truncated


@settings(max_examples=60, deadline=None)
@given(st.lists(events, min_size=3, max_size=12), st.integers(0, 11), st.integers(0, 3))
def test_one_broken_event_costs_no_other(
    some: list[dict[str, Any]], which: int, kind: int
) -> None:
    which %= len(some)
    good = [json.dumps(event) for event in some]
    bad = [
        '{"ph":"X","name":"5" disk","ts":1,"dur":1}',
        '{"ph":"X","name":"say "hi" now","ts":1,"dur":1}',
        '{"ph":"X","name":unquoted words,"ts"::1,"dur":1}',
        '{"ph":"X","name":"torn","ts":1,"args":{"x":',
    ][kind]
    lines = [*good[:which], bad, *good[which:]]
    got, splitter = read_all(("[\n" + ",\n".join(lines) + "\n]").encode())
    assert got == [expected(event) for event in some]
    assert splitter.truncated is False


def test_quick_cuts_that_are_wrong_are_noticed() -> None:
    """Lists of objects inside args hold the very separator that stands between events."""
    plain = {"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"n": 1}}
    tricky = {**plain, "name": "b", "args": {"list": [{"ph": 1}, {"ph": 2}, {"ph": 3}]}}
    some = [plain] * 2000 + [tricky] * 3 + [plain] * 2000
    for style in range(4):
        got, splitter = read_all(written(some, style, 0), block_size=16 << 10)
        assert got == [expected(event) for event in some]
        assert splitter._pattern is not None


def test_a_document_cut_by_pattern_gives_what_the_exact_scanner_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pipeline.split import pattern

    some = [
        {"ph": "X", "name": f"n{i}", "ts": i, "dur": 1, "args": {"i": i, "s": '"},{"'}}
        for i in range(5000)
    ]
    document = written(some, 2, 1)
    quick, _ = read_all(document, 32 << 10)
    monkeypatch.setattr(pattern, "cut", lambda *arguments: None)
    exact, _ = read_all(document, 32 << 10)
    assert quick == exact == [expected(event) for event in some]


def test_memory_does_not_grow_with_a_string_that_is_never_closed() -> None:
    document = b'[{"ph":"X","name":"open,"ts":1}' + b',{"ph":"X","name":"a","ts":1,"dur":1}' * 1000
    got, splitter = read_all(document)
    assert len(got) == 1000
    assert splitter.rejected == 1
    assert splitter.rejects[0].byte_offset == 1


def test_text_between_events_is_kept_as_reject_with_its_place() -> None:
    event = '{"ph":"X","name":"a","ts":1,"dur":1}'
    got, splitter = read_all(f"[{event}, oops, {event}}}, {event}]".encode())
    assert len(got) == 3
    assert [(r.byte_offset, r.text) for r in splitter.rejects] == [(39, "oops"), (81, "}")]


@pytest.mark.parametrize("end", [b"", b"]", b",\n"])
def test_a_half_written_line_takes_no_complete_event_with_it(end: bytes) -> None:
    event = b'{"ph":"X","name":"%s","ts":1,"dur":1}'
    got, splitter = read_all(b'[\n{"ph":"X","na\n' + event % b"c0" + b",\n" + event % b"c1" + end)
    assert [row["name"] for row in got] == ["c0", "c1"]
    assert [(r.byte_offset, r.text) for r in splitter.rejects] == [(2, '{"ph":"X","na')]


A, B = b'{"ph":"X","name":"A","ts":1,"dur":1}', b'{"ph":"X","name":"B","ts":1,"dur":1}'


@pytest.mark.parametrize(
    ("tail", "reason", "metadata"),
    [
        (b',"traceEvents":[%s]}' % B, "a second traceEvents in the document", {}),
        (b'}\n{"traceEvents":[%s]}' % B, "text behind the end of the document", {}),
        (b'}garbage{"a":1}', "text behind the end of the document", {}),
        (b',"k":}', "not valid JSON", {}),
    ],
)
def test_what_stands_behind_the_events_is_never_lost_quietly(
    tail: bytes, reason: str, metadata: dict[str, Any]
) -> None:
    got, splitter = read_all(b'{"traceEvents":[' + A + b"]" + tail)
    assert [row["name"] for row in got] == ["A"]
    assert [reject.reason for reject in splitter.rejects] == [reason]
    assert (splitter.truncated, splitter.metadata) == (False, metadata)


def test_a_bad_value_behind_the_events_costs_no_other_key() -> None:
    tail = b',"foo":N/A,"distributedInfo":{"rank":3}}'
    _, splitter = read_all(b'{"traceEvents":[' + A + b"]" + tail)
    assert splitter.metadata == {"foo": None, "distributedInfo": {"rank": 3}}
    assert (splitter.truncated, splitter.rejected) == (False, 0)


def test_rejects_before_the_end_of_the_array_have_their_own_place(tmp_path: Path) -> None:
    """Also where an object follows among the keys behind the events."""
    text = (
        '{"traceEvents":[{"ph":"X","name":"ok","ts":1,"dur":1},'
        '{"ph":"X","name":"bad","ts":"zz","dur":1}],"other":{"c":2}}'
    )
    (tmp_path / "trace.json").write_text(text)
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert store.sql("SELECT byte_offset FROM rejects").item() == 54 == text.index("bad") - 18
