"""The old reader and frame API: smdebug's answers where they are right, and where they are not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pipeline.compat.smdebug import (
    LocalAlgorithmMetricsReader,
    LocalSystemMetricsReader,
    MergedTimeline,
    PandasFrame,
    ProfilerSystemEvent,
    S3SystemMetricsReader,
    TimeUnits,
    TraceEvent,
)
from pipeline.errors import UsageError
from tests.compat.jobs import BASE, event, write_framework, write_system


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "smdebug.json").read_text())


@pytest.fixture(scope="module")
def synthetic(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    job = tmp_path_factory.mktemp("synthetic") / "job"
    make = [sys.executable, str(shared / "tools" / "make_job.py"), str(job)]
    subprocess.run([*make, "--nodes", "2", "--steps", "600", "--ops", "60"], check=True)
    return job


def folder_of(shared: Path, name: str) -> str:
    return str(shared / "traces" / "smdebug" / name)


@pytest.mark.parametrize(
    ("name", "start", "end", "unit", "count"),
    [
        ("test_traces", 1589930980, 1589930995, TimeUnits.SECONDS, 4),
        ("horovod_timeline_traces", 1593673051472800, 1593673051473100, None, 15),
        ("model_timeline_traces", 1590461127873222, 1590461139949971, None, 54),
        ("tfprofiler_timeline_traces", 0, 1796000000000000, None, 798),
    ],
)
def test_readers_give_as_many_events(
    shared: Path, name: str, start: int, end: int, unit: TimeUnits | None, count: int
) -> None:
    reader = LocalAlgorithmMetricsReader(folder_of(shared, name), use_in_memory_cache=True)
    events = reader.get_events(start, end, unit=unit or TimeUnits.MICROSECONDS)
    assert len(events) == count
    if name == "model_timeline_traces":
        assert events[0].node_id == "0001"


def test_reader_by_step_and_suffix(shared: Path, golden: dict[str, Any]) -> None:
    reader = LocalAlgorithmMetricsReader(folder_of(shared, "merge_traces"))
    for want in golden["merge_traces"]["step_interval"]:
        bounds = (want["start_step"], want["end_step"])
        interval = (want["start_us"], want["end_us"])
        assert reader._get_time_interval_for_step(*bounds) == interval
        assert len(reader.get_events_by_step(*bounds)) == want["events"]
    for suffix, count in golden["merge_traces"]["by_file_suffix"].items():
        assert len(reader.get_events(0, 2e15, file_suffix_filter=[suffix])) == count
    (first,) = reader.get_events_by_step(0, 1, file_suffix_filter=["pythontimeline.json"])[:1]
    assert first.event_name == "Step:ModeKeys.TRAIN"
    assert (first.start_time, first.duration) == (1594662608090195, 9020725)
    assert first.event_args is not None
    assert first.event_args["step_num"] == "0"
    assert json.loads(first.to_json())["ts"] == 1594662608090195


def test_samples_between_two_steps(synthetic: Path) -> None:
    reader = LocalSystemMetricsReader(str(synthetic))
    events = LocalAlgorithmMetricsReader(str(synthetic))
    start, end = events._get_time_interval_for_step(2, 4)
    samples = reader.get_events_by_step(2, 4)
    assert (start, end) == (1596668225500000, 1596668225999999)
    assert [vars(s) for s in samples] == [vars(s) for s in reader.get_events(start, end)]
    assert len(samples) == 38
    assert reader.get_events_by_step(2, 10_000) == []


def test_system_reader(shared: Path, golden: dict[str, Any]) -> None:
    reader = LocalSystemMetricsReader(folder_of(shared, "test_traces"))
    for want in golden["test_traces"]["system_events"]:
        found = reader.get_events(
            want["start_s"], want["end_s"], TimeUnits.SECONDS, event_type=want["type"]
        )
        assert len(found) == want["count"]
        assert round(sum(sample.value or 0 for sample in found), 2) == want["sum_value"]


def test_frames(synthetic: Path, golden: dict[str, Any]) -> None:
    want = golden["synthetic_job"]["frame"]
    frame = PandasFrame(str(synthetic))
    system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
    assert list(system.columns) == [
        "timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type",
    ]  # fmt: skip
    assert list(framework.columns) == [
        "start_time", "end_time", "start_time_us", "end_time_us", "tid", "pid",
        "framework_metric", "step", "bytes", "process", "nodeID",
    ]  # fmt: skip
    assert (len(system), len(framework)) == (want["system_rows"], want["framework_rows"])
    durations = framework["end_time_us"] - framework["start_time_us"]
    assert durations.sum() == want["framework_sum_duration_us"]
    assert round(system["value"].sum(), 2) == want["system_value_sum"]
    assert framework["start_time"].iloc[0] == "2020-08-05T22:57:05:000000"
    assert framework["start_time_us"].iloc[0] == 5_000_000
    assert len(frame.get_all_system_metrics(["gpu0", "cpu1"])) == 3 * 640
    assert len(frame.get_all_framework_metrics(["op_3", "Step:ModeKeys.EVAL"])) == 2400 + 120
    for got, key in (
        (frame.get_profiler_data_by_step(2, 3), "by_step_2_3"),
        (frame.get_profiler_data_by_time(BASE + 10**7, BASE + 2 * 10**7), "by_time_10s_20s"),
    ):
        assert [len(part) for part in got] == [
            want[key]["system_rows"], want[key]["framework_rows"],
        ]  # fmt: skip


def test_overlap(synthetic: Path, golden: dict[str, Any]) -> None:
    frame = PandasFrame(str(synthetic), scan_interval=1000)
    want = golden["synthetic_job"]["overlap_by_timesteps"]
    got = frame.get_framework_metrics_by_timesteps(want["timesteps"])
    assert got == (
        pytest.approx(want["metrics"]), want["detailed"], want["training_phase"],
    )  # fmt: skip
    some = frame.get_framework_metrics_by_timesteps(want["timesteps"], ["op_9"])
    assert some == ({"Dataset": 1.0}, {"op_9": 131145}, {})
    want = golden["synthetic_job"]["overlap_by_ranges"]
    metrics, detailed = frame.get_framework_metrics_by_begin_and_end_timesteps(
        want["begin"], want["end"]
    )
    assert metrics == pytest.approx(want["metrics"])
    assert detailed == pytest.approx(want["detailed"])


def test_equal_events_and_events_before_the_first_system_file_are_kept(tmp_path: Path) -> None:
    write_framework(
        tmp_path, [event("early", 0, 5), event("early", 0, 5), event("late", 10**7, 1)]
    )
    write_system(tmp_path, BASE // 1_000_000 + 5)
    frame = PandasFrame(str(tmp_path)).get_all_framework_metrics()
    assert frame[["framework_metric", "start_time_us"]].values.tolist() == [
        ["early", -5_000_000], ["early", -5_000_000], ["late", 5_000_000],
    ]  # fmt: skip


def test_a_job_without_system_metrics_does_not_wait(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("op", 0, 5)])
    frame = PandasFrame(str(tmp_path))
    assert frame.start_time == 0
    assert frame.get_all_framework_metrics()["start_time_us"].tolist() == [BASE]
    assert frame.get_all_system_metrics().empty


def test_the_base_time_of_a_file_is_its_own(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 1, 1)], end=BASE + 1)
    write_framework(tmp_path, [event("b", 1, 1)], end=BASE + 2, base=BASE + 1000)
    reader = LocalAlgorithmMetricsReader(str(tmp_path))
    assert [found.start_time - BASE for found in reader.get_events(0, 2e15)] == [1, 1001]


def test_ends_close_the_begin_of_their_own_thread(tmp_path: Path) -> None:
    own = {"pid": 1, "name": "op"}
    write_framework(
        tmp_path,
        [
            {**own, "ph": "B", "tid": 1, "ts": 0}, {**own, "ph": "B", "tid": 2, "ts": 5},
            {**own, "ph": "E", "tid": 1, "ts": 10}, {**own, "ph": "E", "tid": 2, "ts": 30},
        ],
    )  # fmt: skip
    events = LocalAlgorithmMetricsReader(str(tmp_path)).get_events(0, 2e15)
    assert [(found.tid, found.duration) for found in events] == [(1, 10), (2, 25)]


def test_threads_have_the_same_number_in_every_process(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 0, 1, tid=4), event("b", 1, 1, args={"thread_id": 9})])
    events = LocalAlgorithmMetricsReader(str(tmp_path)).get_events(0, 2e15)
    assert [(found.phase_tid, found.tid) for found in events] == [(4, 4), (1, 9)]


def test_the_last_instant_counts_and_nothing_divides_by_zero(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("op", 0, 10), event("point", 20, 0)])
    frame = PandasFrame(str(tmp_path))
    instant, after = "2020-08-05T22:57:00:000005", "2020-08-05T22:57:00:000020"
    assert frame.get_framework_metrics_by_timesteps([instant]) == ({"phase": 1.0}, {"op": 10}, {})
    assert frame.get_framework_metrics_by_timesteps([]) == ({}, {}, {})
    none = frame.get_framework_metrics_by_begin_and_end_timesteps([after], [after])
    assert none == ({"phase": 0.0}, {"point": 0.0})


def test_new_files_are_seen(tmp_path: Path) -> None:
    """Where a range comes near the newest file, or on a refresh."""
    reader = LocalAlgorithmMetricsReader(str(tmp_path))
    assert reader.get_events(0, 2e15) == []
    assert reader.get_current_time_range_for_event_query() == (0, 0)
    write_framework(tmp_path, [event("a", 0, 1)], end=BASE + 1)
    assert len(reader.get_events(0, 2e15)) == 1
    hours_later = BASE + 4 * 3_600_000_000
    write_framework(tmp_path, [event("b", 0, 1)], end=hours_later)
    reader.refresh_event_file_list()
    assert len(reader.get_events(0, BASE)) == 2
    write_framework(tmp_path, [event("late", 0, 1)], end=BASE + 5)
    assert len(reader.get_events(0, BASE)) == 2
    assert len(reader.get_events(0, hours_later - 60_000_000)) == 3
    assert reader.get_timestamp_of_first_available_file() == BASE + 1
    assert reader.get_timestamp_of_latest_available_file() == hours_later
    frame = PandasFrame(str(tmp_path))
    write_framework(tmp_path, [event("last", 5, 1)], end=hours_later + 1)
    _, operators, _ = frame.get_framework_metrics_by_timesteps(["2020-08-05T22:57:00:000006"])
    assert operators == {}
    begin, end = "2020-08-05T22:57:00:000005", "2020-08-06T22:57:00:000006"
    ask = frame.get_framework_metrics_by_begin_and_end_timesteps
    assert ask([begin], [end])[1] == {"last": 1.0}


def test_dataloader_frame(tmp_path: Path) -> None:
    args = {"worker_id": 2, "num_workers": 4, "pin_memory": True}
    write_framework(
        tmp_path,
        [event("DataLoaderIter::GetNext", 0, 3, args=args), event("other", 0, 1)],
    )
    frame = PandasFrame(str(tmp_path))
    rows = frame.get_all_dataloader_metrics([".*DataLoaderIter::GetNext"])
    columns = ["framework_metric", "duration_us", "worker_id", "num_workers", "pin_memory"]
    assert rows[columns].values.tolist() == [["DataLoaderIter::GetNext", 3, 2, 4, "True"]]
    assert frame.get_all_dataloader_metrics()["pin_memory"].tolist() == ["True", "NA"]


def test_an_event_at_the_edge_of_two_ranges_is_cached_once(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 0, 5), event("a", 0, 5), event("b", 3, 9)])
    write_system(tmp_path, BASE // 1_000_000)
    frame = PandasFrame(str(tmp_path))
    frame.get_profiler_data_by_time(BASE, BASE + 4, cache_metrics=True)
    edge = (BASE + 4, BASE + 1_000_000)
    system, framework = frame.get_profiler_data_by_time(*edge, cache_metrics=True)
    assert framework["framework_metric"].tolist() == ["a", "a", "b"]
    assert len(system) == 1
    _, alone = frame.get_profiler_data_by_time(BASE + 6, BASE + 7)
    assert alone["framework_metric"].tolist() == ["b"]
    assert "seq" not in alone


def test_nanoseconds_of_one_event_spoil_no_other(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 5_002_000, 5), event("b", 5_007_000.25, 5)])  # type: ignore[arg-type]
    write_system(tmp_path, BASE // 1_000_000)
    frame = PandasFrame(str(tmp_path))
    assert frame.get_all_framework_metrics()["start_time_us"].tolist() == [5_002_000, 5_007_000.25]
    samples = LocalSystemMetricsReader(str(tmp_path)).get_events(0, 2e15)
    assert [sample.timestamp for sample in samples] == [BASE / 1_000_000 + 0.5]


def test_a_sample_has_the_time_of_its_file(shared: Path) -> None:
    samples = LocalSystemMetricsReader(folder_of(shared, "test_traces")).get_events(0, 2e15)
    assert samples[0].timestamp == 1591160699.4570894
    frame = PandasFrame(folder_of(shared, "test_traces")).get_all_system_metrics()
    assert frame["timestamp_us"].dtype == "int64"
    assert frame["timestamp_us"].iloc[0] == 457089


def test_a_relative_path_is_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        write_framework(tmp_path / name / "job", [event(name, 0, 1)])
        monkeypatch.chdir(tmp_path / name)
        events = LocalAlgorithmMetricsReader("job").get_events(0, 2e15)
        assert [found.event_name for found in events] == [name]
    # A new reader sees what is new, and no timeline that was merged into the folder.
    job = tmp_path / "two" / "job"
    MergedTimeline(str(job)).merge_timeline(BASE, BASE + 10)
    write_framework(job, [event("new", 0, 1)], end=BASE + 77)
    assert len(LocalAlgorithmMetricsReader(f"{job}/").get_events(0, 2e15)) == 2


def test_what_old_notebooks_give(synthetic: Path) -> None:
    """A name for a list of names, ends beyond all time, datetimes, lists of unequal length."""
    frame = PandasFrame(str(synthetic))
    assert len(frame.get_all_framework_metrics("op_1")) == 2400  # two names cannot be meant
    assert len(frame.get_all_system_metrics("cpu0")) == 640
    reader = LocalAlgorithmMetricsReader(str(synthetic))
    everything = len(reader.get_events(0, 2e15))
    assert len(reader.get_events(0, sys.maxsize)) == everything
    assert len(reader.get_events(-1e30, 1e30, TimeUnits.SECONDS)) == everything
    assert len(frame.get_profiler_data_by_time(0, sys.maxsize)[1]) == everything
    assert frame.convert_datetime_to_timestamp(datetime(2020, 8, 5, 22, 57)) == BASE
    late, early = "2020-08-05T22:57:10:000000", "2020-08-05T22:57:05:000000"
    ask = frame.get_framework_metrics_by_begin_and_end_timesteps
    assert ask([late, early], [early, late, late]) == ask([early], [late])
    with pytest.raises(UsageError, match="has no step 4000"):
        MergedTimeline(str(synthetic)).merge_timeline(2, 4000, unit="step")


def test_steps_are_those_of_any_event_that_has_a_number(shared: Path) -> None:
    reader = LocalAlgorithmMetricsReader(folder_of(shared, "test_traces"))
    assert reader._get_time_interval_for_step(1, 3) == (1589930988663519, 1589930990667741)
    assert len(reader.get_events_by_step(1, 3)) == 2
    assert reader._get_time_interval_for_step(1, 99) == (0, 0)
    assert reader._get_time_interval_for_step(3, 1) == (1589930990667742, 1589930988663518)
    assert reader.get_events_by_step(3, 1) == []


def test_patterns_are_those_of_python_and_may_lie_anywhere(tmp_path: Path) -> None:
    names = ["op_1", "op_2", "DataLoaderIter::GetNext"]
    write_framework(tmp_path, [event(name, at, 1) for at, name in enumerate(names)])
    frame = PandasFrame(str(tmp_path))
    for pattern, found in {
        "op_(?!1)": names[1:2], "GetNext$": names[2:], "^phas": names, "nothing": [],
    }.items():  # fmt: skip
        rows = frame.get_all_dataloader_metrics([pattern])
        assert rows["framework_metric"].tolist() == found
    with pytest.raises(re.error):
        frame.get_all_dataloader_metrics(["("])


def test_a_choice_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 0, 1)])
    write_system(tmp_path, BASE // 1_000_000)
    with pytest.raises(UsageError, match="no type such as 'cpu'"):
        LocalAlgorithmMetricsReader(str(tmp_path)).get_events(0, 2e15, event_type="cpu")
    with pytest.raises(UsageError, match="is no URL on S3"):
        S3SystemMetricsReader(str(tmp_path))
    system = LocalSystemMetricsReader(str(tmp_path))
    assert len(system.get_events(0, 2e15, file_suffix_filter=["0.algo-1.json"])) == 1
    assert system.get_events(0, 2e15, file_suffix_filter=["algo-2.json"]) == []


def test_a_frame_goes_to_another_process(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 0, 5), event("b", 3, 9)])
    frame = PandasFrame(str(tmp_path))
    frame.get_profiler_data_by_time(BASE, BASE + 1, cache_metrics=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(
            PandasFrame.get_profiler_data_by_time, frame, BASE + 6, BASE + 7, True
        ).result()
    assert found[1]["framework_metric"].tolist() == ["a", "b"]


def test_records_are_made_and_kept_as_they_were() -> None:
    slice_ = TraceEvent(
        ts=5, name="op", dur=2.5, phase_pid=1, phase_tid=3, event_args={"step_num": 4},
        node_id="algo-1", phase="X", file_type="HorovodMetrics", event_phase="ops", pid=7, tid=8,
    )  # fmt: skip
    assert (slice_.start_time, slice_.end_time, slice_.duration) == (5, 7.5, 2.5)
    assert (slice_.process_info.id, slice_.process_info.name) == (1, "ops")
    assert json.loads(slice_.to_json()) == {
        "name": "op", "pid": 7, "tid": 8, "ph": "X", "ts": 5, "dur": 2.5, "args": {"step_num": 4},
    }  # fmt: skip
    sample = ProfilerSystemEvent(
        event_type="cpu", name="cpu0", dimension="Use", value=1.0, node_id="n", timestamp=2.0
    )
    assert (sample.type, sample.name) == ("cpu", "cpu0")
    assert len({slice_, sample}) == 2


def test_the_lakes_of_a_killed_process_do_not_stay(tmp_path: Path) -> None:
    write_framework(tmp_path / "job", [event("a", 0, 5)])
    spill = tmp_path / "spill"
    spill.mkdir()
    code = (
        "import sys; from pipeline.compat.smdebug import PandasFrame as P;"
        "frame = P(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "job")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = {**os.environ, "TMPDIR": str(spill)}
    with subprocess.Popen(command, env=env, **pipes) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"ready\n"
        killed.kill()
    (left,) = spill.iterdir()
    subprocess.run(command, env=env, check=True, input=b"", stdout=subprocess.DEVNULL)
    assert list(spill.iterdir()) == [], f"{left} is left"


def test_threads_share_a_frame(synthetic: Path) -> None:
    frame = PandasFrame(str(synthetic))
    want = len(frame.get_profiler_data_by_step(1, 3)[1])
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda _: len(frame.get_profiler_data_by_step(1, 3)[1]), range(12)))
    assert got == [want] * 12


def test_a_unit_nobody_knows(tmp_path: Path) -> None:
    write_framework(tmp_path, [event("a", 0, 1)])
    with pytest.raises(UsageError, match="give one of TimeUnits"):
        LocalAlgorithmMetricsReader(str(tmp_path)).get_events(0, 1, unit="s")  # type: ignore[arg-type]


def test_without_pandas_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"pip install 'tracelake\[pandas\]'"):
        PandasFrame(str(tmp_path))
