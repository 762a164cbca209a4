"""Ids of flows and async operations in a merged timeline: equal where they were, only there."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pipeline
from tests.query.merging import BASE, read_back


def test_ids_of_two_files_are_kept_apart(tmp_path: Path) -> None:
    flow = [
        {"ph": "s", "name": "flow", "cat": "c", "id": 3, "pid": 1, "tid": 1, "ts": BASE},
        {"ph": "f", "name": "flow", "cat": "c", "id": 3, "pid": 1, "tid": 1, "ts": BASE + 5},
    ]
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("a.json", "b.json"):
        (folder / name).write_text(json.dumps(flow))
    pipeline.ingest(folder, tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        path = store.run("job").merge_timeline(tmp_path / "merged.json")
    arrows = Counter((e["ph"], e["id"]) for e in json.loads(path.read_text()) if e["ph"] != "M")
    # Viewers read the id of a flow as a number: 2^32 + 3 and 2 * 2^32 + 3.
    first, second = "4294967299", "8589934595"
    assert arrows == {("s", first): 1, ("f", first): 1, ("s", second): 1, ("f", second): 1}


def test_what_has_no_id_gets_none(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": BASE, "dur": 1}
    path, _, got = read_back(tmp_path, [event], [event])
    assert got["id"].to_list() == [None, None]
    assert '"id"' not in path.read_text()


def test_async_operations_that_touch_stay_apart(tmp_path: Path) -> None:
    """Back to back, within each other, and without length."""
    own = {"pid": 1, "tid": 1, "cat": "c", "id": 1}
    spans = [
        ("a", 0, 100),
        ("b", 100, 200),
        ("outer", 300, 400),
        ("inner", 300, 400),
        ("dot", 500, 500),
    ]
    events = [
        {**own, "ph": ph, "name": name, "ts": BASE + at}
        for name, start, end in spans
        for ph, at in (("b", start), ("e", end))
    ]
    _, _, got = read_back(tmp_path, events)
    found = [
        (name, ts - BASE * 1000, dur) for name, ts, dur in got["name", "ts_ns", "dur_ns"].rows()
    ]
    assert found == [
        ("a", 0, 100_000), ("b", 100_000, 100_000), ("inner", 300_000, 100_000),
        ("outer", 300_000, 100_000), ("dot", 500_000, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pid": 1, "id2": {"local": "0x5"}}, {"pid": 2, "id2": {"local": "0x5"}}),
        ({"pid": 1, "id": "0x5", "scope": "x"}, {"pid": 1, "id": "0x5", "scope": "y"}),
        ({"pid": 1, "id": "0x5", "scope": "x"}, {"pid": 1, "id": "0x5"}),
        ({"pid": 1, "scope": "x"}, {"pid": 1, "scope": "y"}),
    ],
)
def test_async_operations_told_apart_by_more_than_their_id(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any]
) -> None:
    own = {"tid": 1, "cat": "c"}
    events = [
        {**own, **which, "ph": ph, "name": "one" if which is one else "other", "ts": BASE + at}
        for ph, which, at in (("b", one, 0), ("b", other, 1), ("e", one, 4), ("e", other, 9))
    ]
    _, want, got = read_back(tmp_path, events)
    found = [list(frame["name", "dur_ns", "id"].rows()) for frame in (want, got)]
    assert found[0] == found[1]
    assert [row[:2] for row in found[0]] == [("one", 4000), ("other", 8000)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("0", "4294967296"), ("4294967295", "1-4294967295"), ("999999999", "5294967295"),
        ("0x0", "0x100000000"), ("0x1f", "0x10000001f"), ("0xffffffff", "0x1ffffffff"),
        ("0x01", "1-0x01"), ("007", "1-007"), ("a b", "1-a b"),
    ],
)  # fmt: skip
def test_ids_that_are_numbers_stay_numbers(tmp_path: Path, given: str, shown: str) -> None:
    flow = {"ph": "s", "name": "f", "cat": "c", "id": given, "pid": 1, "tid": 1, "ts": BASE}
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("a.json", "b.json"):
        (folder / name).write_text(json.dumps([flow]))
    pipeline.ingest(folder, tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        path = store.run("job").merge_timeline(tmp_path / "merged.json", sources=["a.json"])
        assert [e["id"] for e in json.loads(path.read_text()) if e["ph"] == "s"] == [given]
        path = store.run("job").merge_timeline(tmp_path / "merged.json")
    ids = [e["id"] for e in json.loads(path.read_text()) if e["ph"] == "s"]
    assert (len(set(ids)), ids[0]) == (2, shown)
