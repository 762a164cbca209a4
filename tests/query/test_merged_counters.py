"""Counters in a merged timeline: each sample with its metric, process, rank and nanosecond."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pipeline
from tests.query.merging import BASE, read_back


def test_counters_keep_their_nanoseconds_and_ranks(tmp_path: Path, lake: Path) -> None:
    folder = tmp_path / "job" / "system" / "incremental" / "2020080522"
    folder.mkdir(parents=True)
    sample = {
        "Type": "gpu",
        "Name": "gpu0",
        "Dimension": "GPUUtilization",
        "NodeId": "n",
        "Value": 1,
    }
    text = json.dumps(sample)[:-1] + ', "Timestamp": 1596668220.1234567}\n'
    (folder / "1596668220.n.json").write_text(text)
    for rank in range(2):
        trace = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank},
            "traceEvents": [
                {
                    "ph": "C",
                    "name": "mem",
                    "pid": 1,
                    "ts": BASE + at,
                    "args": {"b": 1000 * rank + at},
                }
                for at in range(2)
            ],
        }
        (tmp_path / "job" / f"rank{rank}.pt.trace.json").write_text(json.dumps(trace))
    pipeline.ingest(tmp_path / "job", lake)
    with pipeline.Store.open(lake) as store:
        path = store.run("job").merge_timeline(tmp_path / "merged.json", low_gpu=5)
    assert path.read_text().count('"ts":1596668220123456.7,') == 2
    counters = [e for e in json.loads(path.read_text()) if e["ph"] == "C" and e["name"] == "mem"]
    assert len({e["pid"] for e in counters}) == 2
    for pid in {e["pid"] for e in counters}:
        values = [e["args"]["b"] for e in counters if e["pid"] == pid]
        assert values in ([0, 1], [1000, 1001])


def counters(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Names and values of the counters in a file."""
    return [(e["name"], e["args"]) for e in json.loads(path.read_text()) if e["ph"] == "C"]


def test_a_counter_that_was_samples_of_several_metrics(tmp_path: Path, lake: Path) -> None:
    """As Composer's of memory: each sample keeps its metric."""
    memory = {"name": "memory/swap", "cat": "memory", "ph": "C", "ts": BASE, "pid": 0, "tid": 1}
    values = {"used_bytes": 111, "free_bytes": 222}
    (tmp_path / "rank_0.json").write_text(json.dumps([{**memory, "args": values}]))
    pipeline.ingest(tmp_path / "rank_0.json", lake, "job", format="composer")
    with pipeline.Store.open(lake) as store:
        path = store.run("job").merge_timeline(tmp_path / "merged.json")
        want = store.sql("SELECT device, metric, value FROM metrics ORDER BY metric").rows()
    assert want == [("swap", "free_bytes", 222.0), ("swap", "used_bytes", 111.0)]
    assert sorted(counters(path)) == [
        ("swap free_bytes", {"value": 222.0}), ("swap used_bytes", {"value": 111.0}),
    ]  # fmt: skip


def test_counters_of_one_name_in_two_processes_stay_two(tmp_path: Path) -> None:
    events = [
        {"ph": "C", "name": name, "pid": pid, "ts": BASE + at, "args": {"b": 1000 * pid + at}}
        for at in range(2)
        for name, pid in (("mem", 1), ("mem", 2), ("one", 2))
    ]
    path, _, _ = read_back(tmp_path, events)
    assert counters(path) == [
        ("mem (process 1)", {"b": 1000}), ("mem (process 2)", {"b": 2000}), ("one", {"b": 2000}),
        ("mem (process 1)", {"b": 1001}), ("mem (process 2)", {"b": 2001}), ("one", {"b": 2001}),
    ]  # fmt: skip
