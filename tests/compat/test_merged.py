"""The old merged timeline and the parsers of single files."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.compat.smdebug import (
    HorovodProfilerEvents,
    LocalAlgorithmMetricsReader,
    MergedTimeline,
    MergeUnit,
    ProfilerSystemEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
    TimeUnits,
)
from pipeline.errors import SourceError, UsageError
from tests.compat.jobs import event, write_framework

START, END = 1594662618874598, 1594662623418701
SUFFIXES = ("pythontimeline.json", "model_timeline.json", "trace.json.gz", "horovod_timeline.json")


def counted(path: str) -> Counter[str]:
    return Counter(event["ph"] for event in json.loads(Path(path).read_text()))


@pytest.mark.parametrize("unit", [MergeUnit.TIME, MergeUnit.STEP, "step"])
def test_a_merged_timeline_has_the_events_of_its_range(
    shared: Path, tmp_path: Path, unit: MergeUnit | str
) -> None:
    folder = str(shared / "traces" / "smdebug" / "merge_traces")
    start, end = (START, END) if unit is MergeUnit.TIME else (2, 4)
    path = MergedTimeline(folder, output_directory=str(tmp_path)).merge_timeline(start, end, unit)
    assert [str(found) for found in tmp_path.rglob("*merged_timeline.json")] == [path]
    events = [event for event in json.loads(Path(path).read_text()) if "ts" in event]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    reader = LocalAlgorithmMetricsReader(folder)
    ask = reader.get_events if unit is MergeUnit.TIME else reader.get_events_by_step
    total = sum(len(ask(start, end, file_suffix_filter=[suffix])) for suffix in SUFFIXES)
    assert total == (231 if unit is MergeUnit.TIME else 22)
    parser = SMProfilerEvents()
    parser.read_events_from_file(path)
    assert len(parser.get_all_events()) == total


def test_some_files_only(shared: Path, tmp_path: Path) -> None:
    folder = str(shared / "traces" / "smdebug" / "merge_traces")
    merged = MergedTimeline(folder, ["pythontimeline.json"], str(tmp_path))
    assert counted(merged.merge_timeline(START, END))["X"] == 15


def test_the_low_gpu_threshold_counts_and_all_samples_are_there(tmp_path: Path) -> None:
    base = 1596668220
    folder = tmp_path / "job" / "system" / "incremental" / "2020080522"
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = [
        {"Type": "gpu", "Name": "gpu0", "Dimension": "GPUUtilization", "NodeId": "algo-1",
         "Value": value, "Timestamp": base + tick}
        for tick, value in enumerate([10, 60, 80, 90, 99])
    ]  # fmt: skip
    (folder / f"{base}.algo-1.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    merged = MergedTimeline(str(tmp_path / "job"), output_directory=str(tmp_path))
    bounds = (base * 10**6, (base + 4) * 10**6)
    for chosen, marks, counters in (
        (None, 3, 5), ({"lowgpu": ()}, 3, 5), ({"lowgpu": (70,)}, 2, 5), ({"lowgpu": 5}, 0, 5),
        ({}, 0, 0),
    ):  # fmt: skip
        path = merged.merge_timeline(*bounds, sys_metrics_filter=chosen)
        found = counted(path)
        assert (found["i"], found["C"]) == (marks, counters)
    with pytest.raises(UsageError, match="is no threshold"):
        merged.merge_timeline(*bounds, sys_metrics_filter={"lowgpu": ("low",)})
    with pytest.raises(UsageError, match="has no step 2"):
        merged.merge_timeline(2, 4, MergeUnit.STEP)


def test_parsers_of_single_files(shared: Path) -> None:
    traces = shared / "traces" / "smdebug"
    for parser, pattern, count in (
        (HorovodProfilerEvents(), "horovod_timeline_traces/**/*horovod_timeline.json", 19),
        (TensorboardProfilerEvents(), "tfprofiler_timeline_traces/**/*.trace.json.gz", 798),
        (SMProfilerEvents(), "model_timeline_traces/**/*model_timeline.json", 109),
    ):
        for path in sorted(traces.glob(pattern)):
            parser.read_events_from_file(str(path))
        assert len(parser.get_all_events()) == count
        starts = [event.start_time for event in parser.get_events_start_time_sorted()]
        assert starts == sorted(starts)
        ends = [event.end_time for event in parser.get_events_end_time_sorted()]
        assert ends == sorted(ends)
        parser.clear_events()
        assert parser.get_all_events() == []


def test_a_file_that_cannot_be_parsed(tmp_path: Path) -> None:
    (tmp_path / "no-trace.json").write_text("hello")
    for parser in (SMProfilerEvents(), ProfilerSystemEvents()):
        with pytest.raises(SourceError, match="nothing at"):
            parser.read_events_from_file(str(tmp_path / "nope.json"))
    with pytest.raises(SourceError, match="not a trace"):
        SMProfilerEvents().read_events_from_file(str(tmp_path / "no-trace.json"))


def test_one_file_as_two_formats(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 1, 5)])
    (path,) = map(str, tmp_path.rglob("*_pythontimeline.json"))
    for parser, kind in (
        (SMProfilerEvents(), "PythontimelineMetrics"),
        (HorovodProfilerEvents(), "HorovodMetrics"),
        (SMProfilerEvents("Mine"), "Mine"),
    ):
        for _ in range(2):
            parser.read_events_from_file(path)
        assert [found.file_type for found in parser.get_all_events()] == [kind, kind]


def test_parsed_events_in_a_range(shared: Path) -> None:
    parser = SMProfilerEvents()
    for path in (shared / "traces" / "smdebug" / "model_timeline_traces").rglob("*timeline.json"):
        parser.read_events_from_file(str(path))
    assert len(parser.get_events_within_time_range(1590461127873222, 1590461139949971)) == 54
    whole = parser.get_events_within_range(
        datetime(2020, 5, 26, tzinfo=UTC), datetime(2020, 5, 27, tzinfo=UTC)
    )
    assert len(whole) == 109


def test_system_parser(shared: Path) -> None:
    parser = ProfilerSystemEvents()
    parser.read_events_from_file(str(shared / "traces" / "smdebug" / "1591160699.algo-1.json"))
    events = parser.get_all_events()
    assert len(events) == 14
    assert {event.node_id for event in events} == {"algo-1"}
    first = min(event.timestamp for event in events)
    assert len(parser.get_events_within_time_range(first, first, TimeUnits.SECONDS)) >= 1


def test_parsed_events_of_dicts_by_process_and_thread() -> None:
    parser = SMProfilerEvents(type="model")
    names = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Forward"}},
        {"ph": "M", "name": "process_name", "pid": 0,
         "args": {"start_time_since_epoch_in_micros": 1_600_000_000_000_000}},
    ]  # fmt: skip
    own = {"ph": "X", "pid": 3, "dur": 5}
    events = [
        {**own, "name": "a", "tid": 1, "ts": 10, "args": {"pid": 77}},
        {**own, "name": "b", "tid": 2, "ts": 20},
    ]
    parser.read_events_from_json_data([*names, *events], "7-algo-1")
    base = 1_600_000_000_000_000
    assert [(e.event_name, e.start_time, e.node_id) for e in parser.get_all_events()] == [
        ("a", base + 10, "algo-1"), ("b", base + 20, "algo-1"),
    ]  # fmt: skip
    window = (base, base + 100)
    assert [e.event_name for e in parser.get_events_for_process(77, *window)] == ["a"]
    assert [e.event_name for e in parser.get_events_for_process(3, *window)] == ["b"]
    assert [e.event_name for e in parser.get_events_for_thread(2, *window)] == ["b"]
    assert parser.get_events_for_thread(2, base, base + 19) == []
    assert (parser.get_process_info(3).name, list(parser.get_processes())) == ("Forward", [3])
    assert parser.type == "model"


def test_marked_phases_of_tensorflow(tmp_path: Path) -> None:
    own = {"ph": "X", "pid": 1, "tid": 1, "dur": 5}
    names = ["aws_marker-ForwardPass/conv", "aws_marker-ApplyGradient/sgd", "aws_marker-x/y", "op"]
    events = [{**own, "name": name, "ts": place} for place, name in enumerate(names)]
    trace = tmp_path / "vm.trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    assert TensorboardProfilerEvents().get_training_info(str(trace)) == {
        "ForwardPass": [["aws_marker-ForwardPass/conv", 0, 5]],
        "ComputeGradient": [],
        "ApplyGradient": [["aws_marker-ApplyGradient/sgd", 1, 5]],
    }


def test_samples_of_dicts_by_type() -> None:
    parser = ProfilerSystemEvents()
    own = {"Dimension": "d", "NodeId": "n", "Name": "x", "Value": 1.0}
    parser.read_events_from_json_data([{**own, "Type": "cpu", "Timestamp": 1600000000.0}])
    parser.read_event_from_dict({**own, "Type": "gpu", "Timestamp": 1600000001.0})
    window = (1600000000, 1600000001, TimeUnits.SECONDS)
    assert len(parser.get_events_within_time_range(*window)) == 2
    (gpu,) = parser.get_events_within_time_range(*window, event_type="gpu")
    assert (gpu.type, gpu.timestamp) == ("gpu", 1600000001.0)
