"""The merged timeline: a valid Chrome trace, in order, that reads back as the same events."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline.errors import StorageError
from tests.query.merging import BASE, read_back

SAME = ["ts_ns", "dur_ns", "end_ns", "kind", "name", "category", "thread_name", "args"]
NODES = {"algo-1": 101, "algo-2": 102}


def phases(name: str, pid: int) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def job(folder: Path) -> Path:
    """Two nodes with steps, phases, and samples of two GPUs."""
    for node, pid in NODES.items():
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": 0,
             "args": {"start_time_since_epoch_in_micros": BASE}},
            phases("Horovod", 5), phases("zeta", 6), phases("Dataset", 4),
            phases("DataIterator", 3), phases("Backward", 2), phases("Forward-node", 8),
            phases("Step:ModeKeys.TRAIN", 1),
            {"ph": "M", "name": "thread_name", "pid": 3, "tid": 9, "args": {"name": "loader"}},
        ]  # fmt: skip
        for step in range(3):
            start = 1000 * step
            events += [
                {"ph": "X", "name": "Step:ModeKeys.TRAIN", "pid": 1, "ts": start, "dur": 900,
                 "args": {"step_num": str(step), "pid": pid}},
                {"ph": "X", "name": "next", "pid": 3, "tid": 9, "ts": start + 1, "dur": 10.125},
                *({"ph": "X", "name": f"op{place}", "pid": place, "tid": 1,
                   "ts": start + 20 + place, "dur": 5} for place in (2, 4, 5, 6, 8)),
            ]  # fmt: skip
        path = folder / "framework" / "pevents" / "2020080522"
        path.mkdir(parents=True, exist_ok=True)
        name = f"{BASE + 3000}_{pid}-{node}_pythontimeline.json"
        (path / name).write_text(json.dumps(events))
        system = folder / "system" / "incremental" / "2020080522"
        system.mkdir(parents=True, exist_ok=True)
        lines = [
            {"Type": "gpu", "Name": f"gpu{gpu}", "Dimension": "GPUUtilization", "NodeId": node,
             "Value": 30 * tick + gpu, "Timestamp": (BASE + 1000 * tick + 500) / 1e6}
            for tick in range(3) for gpu in range(2)
        ]  # fmt: skip
        text = "\n".join(map(json.dumps, lines)) + "\n"
        (system / f"{BASE // 1_000_000}.{node}.json").write_text(text)
    return folder


@pytest.fixture
def run(tmp_path: Path, lake: Path) -> Any:
    pipeline.ingest(job(tmp_path / "job"), lake)
    with pipeline.Store.open(lake) as store:
        yield store.run("job")


def test_processes_are_named_and_in_order(run: pipeline.Run, tmp_path: Path) -> None:
    document = json.loads(run.merge_timeline(tmp_path / "all.json").read_text())
    names = {e["pid"]: e["args"]["name"] for e in document if e["name"] == "process_name"}
    order = {
        e["pid"]: e["args"]["sort_index"] for e in document if e["name"] == "process_sort_index"
    }
    shown = [names[pid] for pid in sorted(names, key=order.__getitem__)]
    assert shown == [
        f"{phase} {node}"
        for phase in (
            "Step:ModeKeys.TRAIN", "Forward-node", "Backward", "DataIterator", "Dataset",
            "Horovod", "zeta", "system metrics",
        )
        for node in ("algo-1", "algo-2")
    ]  # fmt: skip
    threads = [
        (names[e["pid"]], e["tid"], e["args"]["name"])
        for e in document
        if e["name"] == "thread_name"
    ]
    assert threads == [("DataIterator algo-1", 9, "loader"), ("DataIterator algo-2", 9, "loader")]


def test_samples_are_counters_and_low_use_is_marked(run: pipeline.Run, tmp_path: Path) -> None:
    path = run.merge_timeline(tmp_path / "low.json", low_gpu=31, steps="0:2")
    document = json.loads(path.read_text())
    assert Counter(e["ph"] for e in document if e["ph"] != "M") == {"X": 28, "C": 8, "i": 4}
    counters = [e for e in document if e["ph"] == "C" and e["ts"] == BASE + 500]
    assert sorted((e["name"], e["args"]["value"]) for e in counters) == [
        ("gpu0 GPUUtilization", 0.0), ("gpu0 GPUUtilization", 0.0),
        ("gpu1 GPUUtilization", 1.0), ("gpu1 GPUUtilization", 1.0),
    ]  # fmt: skip
    marks = [(e["ts"] - BASE, e["args"], e["s"]) for e in document if e["ph"] == "i"]
    assert marks == [
        (500, {"gpu0": 0.0, "gpu1": 1.0}, "g"), (500, {"gpu0": 0.0, "gpu1": 1.0}, "g"),
        (1500, {"gpu0": 30.0}, "g"), (1500, {"gpu0": 30.0}, "g"),
    ]  # fmt: skip
    plain = json.loads(run.merge_timeline(tmp_path / "plain.json", metrics=False).read_text())
    assert {e["ph"] for e in plain} == {"M", "X"}


def test_a_range_without_events_is_an_empty_trace(run: pipeline.Run, tmp_path: Path) -> None:
    path = run.merge_timeline(tmp_path / "none.json", start=0, end=1)
    assert json.loads(path.read_text()) == []


@pytest.mark.parametrize(
    ("name", "where", "ranged"),
    [
        ("merge_traces", None, {"start": 1594662618874598, "end": 1594662623418701, "unit": "us"}),
        ("merge_traces", None, {"steps": "2:4"}),
        ("model_timeline_traces", None, {}),
        ("traces", "v100_fractional_us.json.gz", {}),
        ("traces", "v100_rank1_of_2.json.gz", {}),
        ("traces", "h100_bert_small.json.gz", {}),
    ],
)
def test_a_merged_timeline_reads_back_as_the_same_events(
    traces: pipeline.Store, tmp_path: Path, name: str, where: str | None, ranged: dict[str, Any]
) -> None:
    run = traces.run(name)
    want = run.events(**ranged, sources=where)
    path = run.merge_timeline(tmp_path / "merged.json.gz", **ranged, sources=where)
    document = json.loads(gzip.decompress(path.read_bytes()))
    times = [event["ts"] for event in document if event["ph"] != "M"]
    assert times == sorted(times)
    assert Counter(event["ph"] for event in document if event["ph"] not in "MC").total() == len(
        want
    )
    report = pipeline.ingest(path, tmp_path / "again", "again")
    assert (report.events, report.rejected) == (len(want), 0)
    with pipeline.Store.open(tmp_path / "again") as store:
        got = store.run("again").events()
    for frame in (want, got):
        assert frame.height == report.events
    columns = [*SAME, "process_name"] if name != "traces" else SAME
    # A name that is empty is left out: viewers take it for an error.
    want = want.with_columns(pl.col("thread_name", "process_name").replace("", None))
    assert got.select(columns).sort(columns).equals(want.select(columns).sort(columns))


def test_every_kind_of_event_comes_back(tmp_path: Path) -> None:
    own = {"pid": 1, "tid": 1, "ts": BASE}
    events = [
        {**own, "ph": "X", "name": 'slice "é\n', "dur": 5, "cat": "c", "args": {"a": [1, "}"]}},
        {**own, "ph": "B", "name": "never ended"},
        {**own, "ph": "i", "name": "instant", "s": "g"},
        {**own, "ph": "b", "name": "async", "cat": "c", "id": "0x1", "args": {"x": 1}},
        {**own, "ph": "e", "name": "async", "cat": "c", "id": "0x1", "ts": BASE + 9},
        {**own, "ph": "n", "name": "instant of async", "cat": "c", "id": 7},
        {**own, "ph": "s", "name": "flow", "cat": "c", "id": 3},
        {**own, "ph": "t", "name": "flow", "cat": "c", "id": 3},
        {**own, "ph": "f", "name": "flow", "cat": "c", "id": 3, "bp": "e"},
        {**own, "ph": "f", "name": "flow to the next", "cat": "c", "id": 3},
        {**own, "ph": "O", "name": "object", "id": "0x9"},
        {**own, "ph": "P", "name": "sample"},
        {**own, "ph": "X", "tid": 2**63 + 5, "dur": 1, "name": "a thread beyond doubles"},
        {"ph": "X", "name": "no thread", "pid": 1, "ts": BASE, "dur": 0.001},
    ]
    source = tmp_path / "job" / "a.json"
    source.parent.mkdir()
    source.write_text(json.dumps(events))
    pipeline.ingest(source, tmp_path / "lake", "job")
    with pipeline.Store.open(tmp_path / "lake") as store:
        run = store.run("job")
        want = run.events()
        path = run.merge_timeline(tmp_path / "merged.json")
    pipeline.ingest(path, tmp_path / "again", "again")
    with pipeline.Store.open(tmp_path / "again") as store:
        got = store.run("again").events()
    columns = [*SAME, "id"]
    assert len(want) == 13
    ends = [e.get("bp") for e in json.loads(path.read_text()) if e["ph"] == "f"]
    assert ends == ["e", None]
    assert got.select(columns).sort(columns).equals(want.select(columns).sort(columns))
    shown = [e["tid"] for e in json.loads(path.read_text()) if e["name"].startswith("a thread")]
    assert shown == [9000000001]


def test_slices_follow_each_other_in_order(
    traces: pipeline.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of a few lines give the bytes that one slice gives, async ends among them."""
    runs = [traces.run("merge_traces"), traces.run("horovod_timeline_traces")]
    own = {"pid": 1, "tid": 1, "cat": "c"}
    spans = [
        {**own, "ph": ph, "name": f"n{n}", "id": n, "ts": BASE + n + (ph == "e") * 37}
        for n in range(50)
        for ph in "be"
    ]
    source = tmp_path / "a.json"
    source.write_text(json.dumps(spans))
    pipeline.ingest(source, tmp_path / "lake", "async")
    with pipeline.Store.open(tmp_path / "lake") as store:
        for run in (*runs, store.run("async")):
            whole = run.merge_timeline(tmp_path / "whole.json").read_bytes()
            with monkeypatch.context() as patch:
                patch.setattr("pipeline.query.timeline._SLICE_LINES", 7)
                cut = run.merge_timeline(tmp_path / "cut.json").read_bytes()
            assert cut == whole
            times = [event["ts"] for event in json.loads(whole) if event["ph"] != "M"]
            assert times == sorted(times)


def test_numbers_that_are_none_in_arguments_are_texts(tmp_path: Path) -> None:
    args = {"loss": float("nan"), "top": [-float("inf"), 1], "say": 'NaN "Infinity" \\'}
    event = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": BASE, "dur": 1, "args": args}
    path, _, _ = read_back(tmp_path, [event])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    (shown,) = (e for e in json.loads(path.read_text(), parse_constant=refuse) if e["ph"] == "X")
    assert shown["args"] == {
        "loss": "NaN", "top": ["-Infinity", 1], "say": 'NaN "Infinity" \\'
    }  # fmt: skip


def test_threads_of_two_processes_on_one_track_stay_apart(tmp_path: Path, lake: Path) -> None:
    """Both have a thread 7 in the phase Forward."""
    folder = tmp_path / "job" / "framework" / "pevents" / "2020080522"
    folder.mkdir(parents=True)
    for pid in (11, 12):
        events = [
            {"ph": "M", "name": "process_name", "pid": 0,
             "args": {"start_time_since_epoch_in_micros": BASE}},
            phases("Forward", 1),
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": f"w{pid}"}},
            {"ph": "X", "name": f"f{pid}", "pid": 1, "tid": 7, "ts": pid, "dur": 10},
        ]  # fmt: skip
        (folder / f"{BASE + 100}_{pid}-n1_pythontimeline.json").write_text(json.dumps(events))
    pipeline.ingest(tmp_path / "job", lake)
    with pipeline.Store.open(lake) as store:
        path = store.run("job").merge_timeline(tmp_path / "merged.json")
    document = json.loads(path.read_text())
    threads = {e["tid"]: e["args"]["name"] for e in document if e["name"] == "thread_name"}
    slices = {e["name"]: (e["pid"], threads[e["tid"]]) for e in document if e["ph"] == "X"}
    assert slices == {"f11": (1, "w11"), "f12": (1, "w12")}


def test_where_it_cannot_be_written(run: pipeline.Run, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*nowhere"):
        run.merge_timeline(tmp_path / "nowhere" / "merged.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*folder"):
        run.merge_timeline(tmp_path / "folder.json")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".tracelake")] == []


def test_times_count_from_the_start_where_doubles_would_lose_nanoseconds(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    event = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s}'
    texts = [event % ("a", "1796087434949285.012", "2.2"), event % ("b", "1796087434949286", "1")]
    source.write_text("[" + ",".join(texts) + "]")
    pipeline.ingest(source, tmp_path / "lake", "job")
    with pipeline.Store.open(tmp_path / "lake") as store:
        run = store.run("job")
        document = json.loads(run.merge_timeline(tmp_path / "all.json").read_text())
    assert document[0]["args"] == {"start_time_since_epoch_in_micros": 1796087434949285}
    times = [(e["name"], e["ts"], e["dur"]) for e in document if e["ph"] == "X"]
    assert times == [("a", 0.012, 2.2), ("b", 1, 1)]
