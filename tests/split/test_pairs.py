"""Begin and end pairing against a stack that is simulated event by event."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.normalize import FileSlot, Workspace
from pipeline.split import DocumentSplitter

marks = st.lists(
    st.tuples(st.sampled_from("BE"), st.sampled_from([None, "a", "b", "c"]), st.integers(0, 1)),
    max_size=30,
)


def simulate(some: list[tuple[str, str | None, int]]) -> tuple[set[tuple[int, int]], int]:
    """Pairs of (begin, end) positions, and ends without a begin, by the definition."""
    open_begins: dict[int, list[int]] = {}
    pairs, unmatched = set(), 0
    for at, (phase, name, thread) in enumerate(some):
        stack = open_begins.setdefault(thread, [])
        if phase == "B":
            stack.append(at)
            continue
        found = [begin for begin in stack if name is None or some[begin][1] == name]
        if found:
            pairs.add((found[-1], at))
            stack.remove(found[-1])
        else:
            unmatched += 1
    return pairs, unmatched


@settings(max_examples=80, deadline=None)
@given(marks)
def test_pairs_are_those_of_a_stack(some: list[tuple[str, str | None, int]]) -> None:
    events: list[dict[str, Any]] = [
        {"ph": phase, "ts": at, "pid": 1, "tid": thread, **({"name": name} if name else {})}
        for at, (phase, name, thread) in enumerate(some)
    ]
    document = [json.dumps(events).encode(), b""]
    with TemporaryDirectory() as spill, Workspace("200MB", 1, spill) as workspace:
        workspace.read(DocumentSplitter(lambda size: document.pop(0)), 0, False)
        (account,) = workspace.finish([FileSlot(0, 1, "r", "n", "chrome", None, None)])
        rows = workspace.connection.execute("SELECT begin_seq, end_seq FROM pairs").fetchall()
    want, unmatched = simulate(some)
    assert set(rows) == want
    assert len(rows) == len(want)
    assert account.unmatched_ends == unmatched
    assert account.unfinished == sum(phase == "B" for phase, *_ in some) - len(want)


def test_many_pairs_that_do_not_nest_take_no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """First in, first out: B 0, B 1, ... E 0, E 1, ..., each end naming its begin."""
    from pipeline.normalize import workspace as room

    count = 3000
    events = [
        {"ph": "BE"[at // count], "name": f"op{at % count}", "ts": at, "pid": 1, "tid": 1}
        for at in range(2 * count)
    ]
    names: list[str] = []
    run_sql = room.run_sql
    monkeypatch.setattr(
        room,
        "run_sql",
        lambda c, name, *values: (names.append(name), run_sql(c, name, *values))[1],
    )
    document = [json.dumps(events).encode(), b""]
    with TemporaryDirectory() as spill, Workspace("200MB", 1, spill) as workspace:
        workspace.read(DocumentSplitter(lambda size: document.pop(0)), 0, False)
        (account,) = workspace.finish([FileSlot(0, 1, "r", "n", "chrome", None, None)])
        rows = workspace.connection.execute("FROM pairs ORDER BY begin_seq").fetchall()
    assert rows == [(0, at, at + count) for at in range(count)]
    assert account.paired_ends == count
    assert "normalize/pairs_step" not in names


def test_horovod_ends_close_begins_of_their_own_thread(tmp_path: Path) -> None:
    """The old reader pairs within a process: it would give the first slice 4 us, not 8 us."""
    import pipeline

    events = [
        {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1, "tid": 1},
        {"ph": "B", "name": "ALLREDUCE", "ts": 2, "pid": 1, "tid": 2},
        {"ph": "E", "ts": 5, "pid": 1, "tid": 2},
        {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
    ]
    (tmp_path / "horovod_timeline.json").write_text(json.dumps(events)[:-1])
    pipeline.ingest(tmp_path, tmp_path / "lake", run="job")
    with pipeline.Store.open(tmp_path / "lake") as store:
        rows = store.sql("SELECT name, dur_ns FROM events ORDER BY ts_ns").rows()
    assert rows == [("NEGOTIATE_ALLREDUCE", 8000), ("ALLREDUCE", 3000)]
