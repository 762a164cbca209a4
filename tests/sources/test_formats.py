"""What each format means, on small documents whose rows are spelled out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pipeline


def rows(tmp_path: Path, query: str) -> list[tuple[Any, ...]]:
    with pipeline.Store.open(tmp_path / "lake") as store:
        return store.sql(query).rows()


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_composer_units_are_put_right(tmp_path: Path) -> None:
    def counter(name: str, series: str, value: float) -> dict[str, Any]:
        return {
            "ph": "C",
            "name": name,
            "cat": "",
            "ts": 1_600_000_000_000_000,
            "pid": 3,
            "tid": 9,
            "args": {series: value},
        }

    clock = {
        "ph": "M",
        "name": "clock_sync_timestamp_us",
        "ts": 1_600_000_000_000_000,
        "pid": 3,
        "tid": 9,
        "args": {"value": 1_600_000_000_000_000},
    }
    batch = {
        "name": "event/batch",
        "cat": "",
        "ts": 1_600_000_000_000_001,
        "pid": 3,
        "tid": 9,
        "args": {"epoch": 0, "batch": 41},
    }
    write(
        tmp_path / "job" / "rank3.json",
        [
            clock,
            counter("cpu", "cpu_percent", 12.5),
            counter("memory/virtual", "used_gb", 2.0),  # bytes / 2^9: 1024 bytes
            counter("memory/swap", "free_gb", 0.5),  # 256 bytes
            counter("disk/sda/read_count", "field_name", 7),
            counter("disk/nvme0n1/write_bytes", "field_name", 4096),
            counter("network/eth0/kb_sent", "kb_sent", 100.0),  # bytes / 2^3: 800 bytes
            counter("memory/cuda/alloc_mem", "alloc_mem", 5),
            counter("memory/swap", "used_bytes", 3),
            counter("network/eth0/bytes_recv", "bytes_recv", 9),
            counter("disk/sda/read_time", "read_time", 11),
            {**batch, "ph": "B"},
            {**batch, "ph": "E", "ts": 1_600_000_000_000_009},
        ],
    )
    pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    got = rows(
        tmp_path, "SELECT resource, device, metric, value, unit, rank FROM metrics ORDER BY seq"
    )
    assert got == [
        ("cpu", "cpu", "cpu_percent", 12.5, "percent", 3),
        ("memory", "virtual", "used_bytes", 1024.0, "bytes", 3),
        ("memory", "swap", "free_bytes", 256.0, "bytes", 3),
        ("disk", "sda", "read_count", 7.0, "count", 3),
        ("disk", "nvme0n1", "write_bytes", 4096.0, "bytes", 3),
        ("network", "eth0", "bytes_sent", 800.0, "bytes", 3),
        ("memory", "cuda", "alloc_mem", 5.0, None, 3),
        ("memory", "swap", "used_bytes", 3.0, "bytes", 3),
        ("network", "eth0", "bytes_recv", 9.0, "bytes", 3),
        ("disk", "sda", "read_time", 11.0, "milliseconds", 3),
    ]
    assert rows(tmp_path, "SELECT name, step, rank, dur_ns, clock FROM events") == [
        ("event/batch", 41, 3, 8000, "epoch")
    ]


def test_composer_merged_trace_beside_its_parts_is_skipped(tmp_path: Path) -> None:
    event = [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 0, "tid": 0}]
    write(tmp_path / "job/rank0.json", event)
    write(tmp_path / "job/merged_trace.json", event)
    report = pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    assert report.files == 1
    assert [skip.reason for skip in report.skipped] == ["merged from the traces beside it"]


def test_smdebug_bases_are_those_of_each_file(tmp_path: Path) -> None:
    folder = tmp_path / "job/profiler-output/framework/pevents/2020080522"
    for number, base in enumerate((1_596_668_220_000_000, 1_596_668_280_000_000)):
        write(
            folder / f"159666830000000{number}_77-algo-{number + 1}_pythontimeline.json",
            [
                {
                    "ph": "M",
                    "name": "process_name",
                    "pid": 0,
                    "args": {"start_time_since_epoch_in_micros": base},
                },
                {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Forward"}},
                {
                    "ph": "X",
                    "name": "conv",
                    "pid": 1,
                    "ts": 5,
                    "dur": 2,
                    "args": {"pid": 77, "step_num": "12"},
                },
            ],
        )
    report = pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    assert report.runs == ("job",)
    assert rows(
        tmp_path, "SELECT node, ts_ns, process_name, step, hour FROM events ORDER BY ts_ns"
    ) == [
        ("algo-1", 1_596_668_220_000_005_000, "Forward", 12, "2020-08-05T22"),
        ("algo-2", 1_596_668_280_000_005_000, "Forward", 12, "2020-08-05T22"),
    ]


def test_an_open_file_is_read_only_when_its_job_has_ended(tmp_path: Path) -> None:
    event = '[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}'
    folder = tmp_path / "job/framework/pevents/2020080522"
    write(folder / "1596668300000000_7-algo-1_pythontimeline.json.tmp", event)
    write(folder / "1596668240000000_7-algo-1_pythontimeline.json", event)
    report = pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    assert report.files == 1
    assert [skip.reason for skip in report.skipped] == [
        "still being written: its job has not ended"
    ]
    write(tmp_path / "job/framework/training_job_end.ts", "1596668400")
    assert pipeline.ingest(tmp_path / "job", tmp_path / "lake").files == 1


def test_kineto_rank_host_base_and_steps(tmp_path: Path) -> None:
    write(
        tmp_path / "x.json",
        {
            "schemaVersion": 1,
            "distributedInfo": {"rank": 5},
            "host_name": "trainer-7",
            "traceEvents": [
                {
                    "ph": "X",
                    "cat": "user_annotation",
                    "name": "ProfilerStep#12",
                    "pid": 1,
                    "tid": 1,
                    "ts": 10.5,
                    "dur": 1.25,
                },
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": "gemm",
                    "pid": 0,
                    "tid": 7,
                    "ts": 11.001,
                    "dur": 0.5,
                    "args": {
                        "device": 0,
                        "stream": 7,
                        "correlation": 99,
                        "External id": 4,
                        "bytes": 512,
                    },
                },
            ],
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        },
    )
    pipeline.ingest(tmp_path / "x.json", tmp_path / "lake")
    got = rows(
        tmp_path,
        "SELECT run, node, rank, step, ts_ns, dur_ns, device, stream, correlation,"
        " external_id, bytes FROM events ORDER BY ts_ns",
    )
    assert got == [
        ("x", "trainer-7", 5, 12, 1_700_000_000_000_010_500, 1250, None, None, None, None, None),
        ("x", "trainer-7", 5, None, 1_700_000_000_000_011_001, 500, 0, 7, 99, 4, 512),
    ]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-3.json", 3),
        ("trace_rank12_of_16.json", 12),
        ("rank_0.json", 0),
        ("frank.json", None),
    ],
)
def test_rank_in_a_file_name(tmp_path: Path, name: str, rank: int | None) -> None:
    write(tmp_path / name, [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}])
    pipeline.ingest(tmp_path / name, tmp_path / "lake")
    assert rows(tmp_path, "SELECT rank FROM sources") == [(rank,)]


def test_each_folder_with_framework_or_system_is_a_run(tmp_path: Path) -> None:
    sample = json.dumps(
        {
            "Type": "gpu",
            "Name": "gpu0",
            "Dimension": "GPUUtilization",
            "Value": 50,
            "NodeId": "algo-1",
            "Timestamp": 1596668220.25,
        }
    )
    for job in ("a", "b/profiler-output"):
        write(tmp_path / "jobs" / job / "system/incremental/1596668220.algo-1.json", sample)
    write(tmp_path / "jobs/loose.json", '[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}]')
    pipeline.ingest(tmp_path / "jobs", tmp_path / "lake")
    assert rows(tmp_path, "SELECT DISTINCT run, format FROM sources ORDER BY 1") == [
        ("a", "system"),
        ("b", "system"),
        ("jobs", "chrome"),
    ]
    assert rows(
        tmp_path, "SELECT DISTINCT ts_ns, resource, device, metric, value, unit FROM metrics"
    ) == [(1_596_668_220_250_000_000, "gpu", "gpu0", "GPUUtilization", 50.0, "percent")]


def test_numbers_in_args_keep_all_their_digits(tmp_path: Path) -> None:
    event = (
        '{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,'
        '"args":{"t": 1750244461563845.123, "z": 1.10, "u": 18446744073709551615}}'
    )
    write(tmp_path / "t.json", f"[{event}]")
    pipeline.ingest(tmp_path / "t.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT args::VARCHAR FROM events") == [
        ('{"t": 1750244461563845.123, "z": 1.10, "u": 18446744073709551615}',)
    ]


def test_counters_without_series_are_accounted_for(tmp_path: Path) -> None:
    from pipeline.store.verify import verify

    counter = {"ph": "C", "name": "c", "pid": 1}
    write(
        tmp_path / "t.json",
        [
            {**counter, "ts": 1},
            {**counter, "ts": 2, "args": {"x": 1, "y": {"z": 1}, "w": "text"}},
            {**counter, "ts": 3, "args": 5},
        ],
    )
    pipeline.ingest(tmp_path / "t.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT metric, value, ts_ns FROM metrics ORDER BY metric") == [
        ("w", None, 2000),
        ("x", 1.0, 2000),
        ("y", None, 2000),
    ]
    assert rows(tmp_path, "SELECT events_read, counter_events, last_ns FROM sources") == [
        (3, 3, 2000)
    ]
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert verify(store) == []


def test_a_lake_in_a_folder_with_an_odd_name(tmp_path: Path) -> None:
    write(tmp_path / "t.json", [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1}])
    lake = tmp_path / "my [lakes]?*" / "it's one"
    pipeline.ingest(tmp_path / "t.json", lake)
    with pipeline.Store.open(lake) as store:
        assert store.sql("SELECT count(*) FROM events").item() == 1
    assert (lake / "lake.duckdb").exists()


def test_events_around_a_full_hour_are_in_their_hour(tmp_path: Path) -> None:
    """In a double, the last hundred nanoseconds of an hour are those of the next."""
    moments = ("1727999999999999.999", "1728000000000000", "-0.001", "-3600000000")
    events = ",".join(f'{{"ph":"X","name":"a","ts":{ts},"dur":1,"pid":1}}' for ts in moments)
    base = '{"ph":"M","name":"process_name","args":{"start_time_since_epoch_in_micros":0}}'
    write(tmp_path / "t.json", f"[{base},{events}]")
    pipeline.ingest(tmp_path / "t.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT ts_ns, hour FROM events ORDER BY ts_ns") == [
        (-3_600_000_000_000, "1969-12-31T23"),
        (-1, "1969-12-31T23"),
        (1_727_999_999_999_999_999, "2024-10-03T23"),
        (1_728_000_000_000_000_000, "2024-10-04T00"),
    ]


def test_async_ids_of_id2(tmp_path: Path) -> None:
    """A local id is its process's own, a global one is everybody's."""

    def mark(ph: str, ts: int, pid: int, **id2: str) -> dict[str, Any]:
        return {"ph": ph, "cat": "c", "name": "a", "ts": ts, "pid": pid, "id2": id2}

    write(
        tmp_path / "t.json",
        [
            mark("b", 1, 1, local="0x1"),
            mark("b", 2, 1, local="0x2"),
            mark("b", 3, 2, local="0x1"),
            mark("b", 4, 1, **{"global": "0x1"}),
            mark("e", 5, 1, local="0x1"),
            mark("e", 9, 1, local="0x2"),
            mark("e", 13, 2, local="0x1"),
            mark("e", 18, 2, **{"global": "0x1"}),
        ],
    )
    pipeline.ingest(tmp_path / "t.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT id, pid, dur_ns FROM events ORDER BY ts_ns") == [
        ("0x1 pid 1", 1, 4000),
        ("0x2 pid 1", 1, 7000),
        ("0x1 pid 2", 2, 10000),
        ("0x1", 1, 14000),
    ]


@pytest.mark.parametrize("ts", ['5 "dur":3', '012,"dur":3'])
def test_a_broken_event_is_rejected_and_not_shortened(tmp_path: Path, ts: str) -> None:
    write(tmp_path / "t.json", f'[{{"ph":"X","name":"a","ts":{ts},"pid":1,"args":{{}}}}]')
    pipeline.ingest(tmp_path / "t.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT event_rows, rejected FROM sources") == [(0, 1)]


@pytest.mark.parametrize(
    "given", ["", "plugins/profile/1", "plugins/profile/1/vm.trace.json", "*"]
)
def test_the_clock_of_a_tensorflow_profile_stands_beside_it(tmp_path: Path, given: str) -> None:
    job = tmp_path / "job"
    trace = {"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": 2}
    write(job / "plugins/profile/1/vm.trace.json", {"traceEvents": [trace]})
    write(job / "7-algo-1_1596659864545103_1596659864854168.metadata", "")
    pipeline.ingest(str(job / given), tmp_path / "lake", "job")
    assert rows(tmp_path, "SELECT node, clock, ts_ns FROM events") == [
        ("algo-1", "epoch", 1596659864545108000),
    ]  # fmt: skip


def test_steps_that_an_event_of_any_format_has_in_its_name(tmp_path: Path) -> None:
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Steps"}},
    ]
    own = {"ph": "X", "pid": 1, "ts": 5, "dur": 2}
    events = [
        {**own, "tid": 1, "name": "ProfilerStep#41"},
        {**own, "tid": 1, "name": "ProfilerStep#x"},
        {**own, "tid": 1, "name": "42"},
        {**own, "tid": 2, "name": "43"},
        {**own, "tid": 2, "name": "x44"},
        {**own, "tid": 2, "name": "45", "args": {"step_num": 7}},
    ]
    write(tmp_path / "a.json", [*names, *events])
    pipeline.ingest(tmp_path / "a.json", tmp_path / "lake")
    assert rows(tmp_path, "SELECT name, step FROM events ORDER BY seq") == [
        ("ProfilerStep#41", 41), ("ProfilerStep#x", None), ("42", None), ("43", 43),
        ("x44", None), ("45", 7),
    ]  # fmt: skip


def test_what_an_end_says_wins_over_its_begin(tmp_path: Path) -> None:
    slice_ = {"pid": 1, "tid": 1, "name": "copy"}
    begin = {"step_num": 8, "bytes": 10, "stream": 3, "from": "begin"}
    end = {"step_num": 9, "bytes": 20, "device": 1, "correlation": 5, "External id": 6}
    write(
        tmp_path
        / "job"
        / "framework"
        / "pevents"
        / "2020080522"
        / "9_1-algo-1_model_timeline.json",
        [
            {**slice_, "ph": "B", "ts": 0, "args": begin},
            {**slice_, "ph": "E", "ts": 5, "args": end},
            {**slice_, "ph": "B", "ts": 6, "args": begin},
            {**slice_, "ph": "E", "ts": 7},
        ],
    )
    pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    columns = (
        "step, bytes, stream, device, correlation, external_id, args->>'step_num', args->>'from'"
    )
    assert rows(tmp_path, f"SELECT {columns} FROM events ORDER BY ts_ns") == [
        (9, 20, 3, 1, 5, 6, "9", "begin"),
        (8, 10, 3, None, None, None, "8", "begin"),
    ]


def test_the_unit_that_a_sample_gives_wins_over_its_name(tmp_path: Path) -> None:
    sample = {"Type": "i/o", "Name": "sda", "NodeId": "n", "Timestamp": 1596668220.0, "Value": 1}
    lines = [
        {**sample, "Dimension": "ReadBytes"},
        {**sample, "Dimension": "ReadBytes", "Unit": "bytes/s"},
        {**sample, "Dimension": "Heat", "Unit": "celsius"},
        {**sample, "Dimension": "Heat", "Unit": None},
    ]
    path = tmp_path / "job" / "system" / "incremental" / "1596668220.n.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines * 100))
    pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    query = "SELECT metric, unit, COUNT(*) FROM metrics GROUP BY ALL ORDER BY ALL"
    assert rows(tmp_path, query) == [
        ("Heat", "celsius", 100), ("Heat", None, 100), ("ReadBytes", "bytes", 100),
        ("ReadBytes", "bytes/s", 100),
    ]  # fmt: skip
    assert rows(tmp_path, "SELECT rejected FROM sources") == [(0,)]


def test_composers_files_are_known_by_their_name(tmp_path: Path) -> None:
    """Only the first of them begins with what tells."""
    counter = {"name": "cpu", "cat": "cpu", "ph": "C", "ts": 1_600_000_000_000_000, "pid": 3}
    write(tmp_path / "job" / "ep12-ba208-rank3.json", [{**counter, "args": {"cpu_percent": 5}}])
    write(
        tmp_path / "job" / "first.json",
        [{**counter, "ph": "i", "name": "callback/SystemProfiler/event/init", "pid": 1}],
    )
    pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    assert rows(tmp_path, "SELECT format, rank, clock FROM sources ORDER BY uri") == [
        ("composer", 3, "epoch"), ("composer", None, "epoch"),
    ]  # fmt: skip
    assert rows(tmp_path, "SELECT resource, unit, rank FROM metrics") == [("cpu", "percent", 3)]
