"""Recording the machine: what is in the files, and what may go wrong while it is written."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from pipeline.errors import UsageError
from pipeline.record import SystemRecorder
from pipeline.record.clock import next_tick
from pipeline.record.files import Presence, rank_of
from tests.record.conftest import START, Simulated, written


class Times(NamedTuple):
    user: float
    idle: float
    iowait: float
    guest: float


def run(recorder: SystemRecorder) -> None:
    """Record until the simulated clock says that it is over."""
    recorder.start()
    thread = recorder._ticks._thread
    assert thread is not None
    thread.join()
    recorder.stop()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What psutil says of a machine, for a test to change."""
    state = SimpleNamespace(
        cores=[Times(10.0, 20.0, 1.0, 3.0), Times(0.0, 50.0, 0.0, 0.0)],
        memory=SimpleNamespace(total=4096, used=1024, available=2048, percent=50.0),
        swap=SimpleNamespace(total=100, used=30, free=70),
        disks={"sda": SimpleNamespace(
            read_bytes=1000, write_bytes=500, read_count=7, write_count=3,
        )},
        nics={"eth0": SimpleNamespace(
            bytes_sent=800, bytes_recv=80, packets_sent=8, packets_recv=4,
        ), "lo0": SimpleNamespace(bytes_sent=0, bytes_recv=0, packets_sent=0, packets_recv=0)},
    )  # fmt: skip
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: list(state.cores))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: state.memory)
    monkeypatch.setattr(psutil, "swap_memory", lambda: state.swap)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: dict(state.disks))
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic, nowrap: dict(state.nics))
    return state


def test_every_value_in_its_unit(job: Path, machine: SimpleNamespace) -> None:
    """Bytes are bytes, series are named by what they hold, rates are by the second."""

    def work(tick: int) -> None:
        machine.cores = [Times(10.3, 20.1, 1.1, 3.3), Times(0.0, 50.5, 0.0, 0.0)]
        machine.disks["sda"] = SimpleNamespace(
            read_bytes=3000, write_bytes=500, read_count=9, write_count=3
        )
        machine.nics["eth0"] = SimpleNamespace(
            bytes_sent=1824, bytes_recv=80, packets_sent=9, packets_recv=4
        )

    run(SystemRecorder(job, 0.5, gpu=False, node="n1", clock=Simulated(1, work)))
    found = {
        (line["Type"], line["Name"], line["Dimension"]): (round(line["Value"], 6), line["Unit"])
        for line in written(job)
    }
    assert found == {
        ("cpu", "cpu", "CPUUtilization"): (30.0, "percent"),
        ("cpu", "cpu", "IOWait"): (10.0, "percent"),
        ("cpu", "cpu0", "CPUUtilization"): (60.0, "percent"),
        ("cpu", "cpu0", "IOWait"): (20.0, "percent"),
        ("cpu", "cpu1", "CPUUtilization"): (0.0, "percent"),
        ("cpu", "cpu1", "IOWait"): (0.0, "percent"),
        ("memory", "virtual", "TotalBytes"): (4096, "bytes"),
        ("memory", "virtual", "UsedBytes"): (1024, "bytes"),
        ("memory", "virtual", "AvailableBytes"): (2048, "bytes"),
        ("memory", "virtual", "MemoryUsedPercent"): (50.0, "percent"),
        ("memory", "swap", "TotalBytes"): (100, "bytes"),
        ("memory", "swap", "UsedBytes"): (30, "bytes"),
        ("memory", "swap", "FreeBytes"): (70, "bytes"),
        ("i/o", "sda", "ReadBytes"): (3000, "bytes"),
        ("i/o", "sda", "ReadBytesPerSecond"): (4000.0, "bytes/s"),
        ("i/o", "sda", "WriteBytes"): (500, "bytes"),
        ("i/o", "sda", "WriteBytesPerSecond"): (0.0, "bytes/s"),
        ("i/o", "sda", "ReadOperations"): (9, "count"),
        ("i/o", "sda", "ReadOperationsPerSecond"): (4.0, "count/s"),
        ("i/o", "sda", "WriteOperations"): (3, "count"),
        ("i/o", "sda", "WriteOperationsPerSecond"): (0.0, "count/s"),
        ("network", "eth0", "SentBytes"): (1824, "bytes"),
        ("network", "eth0", "SentBytesPerSecond"): (2048.0, "bytes/s"),
        ("network", "eth0", "ReceivedBytes"): (80, "bytes"),
        ("network", "eth0", "ReceivedBytesPerSecond"): (0.0, "bytes/s"),
        ("network", "eth0", "SentPackets"): (9, "count"),
        ("network", "eth0", "SentPacketsPerSecond"): (2.0, "count/s"),
        ("network", "eth0", "ReceivedPackets"): (4, "count"),
        ("network", "eth0", "ReceivedPacketsPerSecond"): (0.0, "count/s"),
    }
    pipeline.ingest(job, job.parent / "lake")
    with pipeline.Store.open(job.parent / "lake") as store:
        metrics = store.run("job").metrics()
        assert metrics["ts_ns"].unique().to_list() == [(START * 10 + 5) * 10**8]
        assert dict(metrics.group_by("resource").len().rows()) == {
            "cpu": 6, "memory": 7, "disk": 8, "network": 8,
        }  # fmt: skip
        query = "SELECT DISTINCT unit FROM metrics WHERE metric = 'SentBytesPerSecond'"
        assert store.sql(query).item() == "bytes/s"


def test_a_counter_that_goes_back_has_no_rate_for_once(
    job: Path, machine: SimpleNamespace
) -> None:
    values = iter([5000, 100, 300])

    def work(tick: int) -> None:
        disk = vars(machine.disks["sda"]) | {"read_bytes": next(values)}
        machine.disks["sda"] = SimpleNamespace(**disk)
        # Linux takes back time that was waited.
        machine.cores[1] = Times(tick / 4, 50.0 + tick / 4, -tick / 100, 0.0)

    run(SystemRecorder(job, 0.5, gpu=False, clock=Simulated(3, work)))
    rates = [line["Value"] for line in written(job) if line["Dimension"] == "ReadBytesPerSecond"]
    assert rates == [8000.0, 400.0]
    waits = [s["Value"] for s in written(job) if (s["Name"], s["Dimension"]) == ("cpu1", "IOWait")]
    assert waits == [0.0, 0.0, 0.0]


@given(
    start=st.floats(0, 1e6), interval=st.floats(0.01, 3600), late=st.floats(0, 1e5)
)  # fmt: skip
def test_the_next_tick_is_the_first_that_is_still_to_come(
    start: float, interval: float, late: float
) -> None:
    tick = next_tick(start, interval, start + late)
    number = round((tick - start) / interval)
    assert tick == pytest.approx(start + number * interval)
    slack = 1e-9 * (start + late + interval)
    assert start + late - slack < tick <= start + late + interval + slack


def test_a_late_tick_is_not_doubled_and_nothing_drifts(
    job: Path, machine: SimpleNamespace
) -> None:
    def work(tick: int) -> None:
        if tick == 3:
            clock.elapsed += 1.7  # the machine was busy: three ticks are gone

    clock = Simulated(6, work)
    run(memory_only(job, clock=clock))
    assert moments(job) == [0.5, 1.0, 3.2, 3.5, 4.0, 4.5]


def memory_only(job: Path, interval: float = 0.5, **more: Any) -> SystemRecorder:
    return SystemRecorder(
        job, interval, cpu=False, disk=False, network=False, gpu=False, node="n1", **more
    )


def moments(job: Path) -> list[float]:
    """Seconds since the start of each tick, in the order in which they were written."""
    used = [line for line in written(job) if line["Dimension"] == "UsedBytes"]
    return [round(line["Timestamp"] - START, 6) for line in used if line["Name"] == "virtual"]


def test_a_file_a_minute_in_the_folder_of_its_hour(job: Path, machine: SimpleNamespace) -> None:
    run(memory_only(job, 30.0, clock=Simulated(5)))
    assert sorted(path.relative_to(job).as_posix() for path in job.rglob("*.*")) == [
        "system/incremental/2020091312/1600000020.n1.json",
        "system/incremental/2020091312/1600000080.n1.json",
        "system/incremental/2020091312/1600000140.n1.json",
        "system/training_job_end.ts",
    ]
    assert moments(job) == [30, 60, 90, 120, 150]


def test_a_clock_that_steps_back_is_survived(job: Path, machine: SimpleNamespace) -> None:
    def work(tick: int) -> None:
        clock.stepped = {4: -90.0, 7: 100.0}.get(tick, clock.stepped)

    clock = Simulated(8, work)
    run(memory_only(job, 30.0, clock=clock))
    assert {path.name: path.read_text().count("UsedBytes") // 2 for path in files(job)} == {
        "1600000020.n1.json": 2,  # 30, 60
        "1600000080.n1.json": 2,  # 90, then the clock steps back: 30
        "1600000021.n1.json": 1,  # 60
        "1600000081.n1.json": 1,  # 90
        "1600000260.n1.json": 1,  # and forth: 310
        "1600000320.n1.json": 1,  # 340
    }
    assert sorted(moments(job)) == [30, 30, 60, 60, 90, 90, 310, 340]


def files(job: Path) -> list[Path]:
    return list(job.glob("system/incremental/*/*.json"))


def test_what_fails_ends_nothing_else(
    job: Path, machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def work(tick: int) -> None:
        machine.memory = None if tick in (2, 3) else SimpleNamespace(**memory)

    memory = vars(machine.memory)
    with caplog.at_level(logging.WARNING):
        run(SystemRecorder(job, 0.5, cpu=False, gpu=False, node="n1", clock=Simulated(4, work)))
    assert moments(job) == [0.5, 2.0]
    sent = [line for line in written(job) if line["Dimension"] == "SentBytes"]
    assert len(sent) == 4
    assert [record.getMessage().partition(":")[2] for record in caplog.records] == [
        " memory fails and is left out while it does: 'NoneType' object has no attribute 'total'"
    ]


@pytest.mark.parametrize("hanging", [1, 2])
def test_what_hangs_keeps_the_training_neither_from_its_start_nor_its_end(
    job: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hanging: int
) -> None:
    """As a driver that answers no more, or a mount whose server is gone."""
    answer, asked, times = threading.Event(), threading.Event(), count(1)

    def hangs() -> Any:
        if next(times) == hanging:
            asked.set()
            assert answer.wait(60)
        return SimpleNamespace(total=1, used=1, available=1, percent=1.0)

    monkeypatch.setattr(psutil, "virtual_memory", hangs)
    monkeypatch.setattr("pipeline.record.clock._PATIENCE", 0.1)
    recorder = memory_only(job, 0.01).start()
    assert asked.wait(30)
    recorder.stop()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("recording: it has not stopped within 0.1 seconds")
    answer.set()
    thread = recorder._ticks._thread
    assert thread is not None
    thread.join()


def test_a_folder_that_is_removed_is_written_again(
    job: Path, machine: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    def work(tick: int) -> None:
        if tick == 3:
            shutil.rmtree(job)

    run(memory_only(job, clock=Simulated(6, work)))
    # The sample that found it gone is gone, too.
    assert moments(job) == [2.0, 2.5, 3.0]
    assert len(caplog.records) == 1


def test_recorders_of_one_node_do_not_write_over_each_other(
    job: Path, machine: SimpleNamespace
) -> None:
    run(memory_only(job, clock=Simulated(2)))
    run(memory_only(job, clock=Simulated(2)))
    names = [path.name for path in sorted(job.glob("system/incremental/*/*"))]
    assert names == ["1599999960.n1.json", "1599999961.n1.json"]
    assert moments(job) == [0.5, 1.0, 0.5, 1.0]


def test_the_last_one_to_leave_marks_the_end(job: Path) -> None:
    marker = job / "system" / "training_job_end.ts"
    with memory_only(job, 0.01):
        with memory_only(job, 0.01):
            assert not marker.exists()
        Presence(job, "system").leave()
        assert not marker.exists()
    assert marker.exists()
    with memory_only(job, 0.01):
        assert not marker.exists()


def test_stopping_does_not_wait_for_the_tick(job: Path) -> None:
    with memory_only(job, 3600.0) as recorder:
        pass
    assert recorder.samples == 7
    assert {line["NodeId"] for line in written(job)} == {"n1"}
    recorder.stop()
    with pytest.raises(UsageError, match="started before"):
        recorder.start()


def test_a_forked_process_leaves_the_recording_alone(job: Path) -> None:
    with memory_only(job, 0.01) as recorder:
        while not recorder.samples:
            pass
        child = os.fork()
        if child == 0:
            recorder.stop()
            os._exit(0)
        os.waitpid(child, 0)
        # Of two files the first is of the minute that has just ended.
        assert max(job.glob("system/incremental/*/*")).suffix == ".tmp"
    assert not list(job.rglob("*.tmp"))


@pytest.mark.slow
def test_ten_hours_hold_the_same_memory(job: Path, machine: SimpleNamespace) -> None:
    process = psutil.Process()
    held: dict[int, int] = {}

    def work(tick: int) -> None:
        if tick in (7_200, 72_000):  # one hour, ten hours
            held[tick] = process.memory_info().rss

    run(SystemRecorder(job, 0.5, gpu=False, node="n1", clock=Simulated(72_000, work)))
    assert held[72_000] - held[7_200] < 2_000_000
    assert len(files(job)) == 601
    assert len(list(job.glob("system/incremental/*"))) == 11


SCRIPT = """
import sys
from pipeline.record import SystemRecorder
recorder = SystemRecorder(sys.argv[1], 0.005, node="n1").start()
while recorder.samples < 500:
    pass
print("ready", flush=True)
{then}
"""


def start(job: Path, then: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT.format(then=then), str(job)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_what_a_killed_process_recorded_is_read(job: Path) -> None:
    with start(job, "sys.stdin.read()") as process:
        Presence(job, "framework").leave()
        assert not (job / "system" / "training_job_end.ts").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Where a minute has just ended there are two.
    *closed, last = sorted(job.glob("system/incremental/*/*"))
    assert {path.suffix for path in closed} <= {".json"}
    assert last.suffix == ".tmp"
    text = "".join(path.read_text() for path in (*closed, last))
    Presence(job, "system").leave()  # as another recorder does
    assert (job / "system" / "training_job_end.ts").exists()
    report = pipeline.ingest(job, job.parent / "lake")
    assert report.metrics == text.count("\n")
    assert report.metrics >= 500
    assert (report.failed, report.rejected) == ((), text[-1] != "\n")


def test_a_process_that_ends_without_stopping_leaves_closed_files(job: Path) -> None:
    with start(job, "") as process:
        assert process.wait() == 0
    assert {path.suffix for path in job.rglob("*.*")} == {".json", ".ts"}


def test_a_full_disk_does_not_end_the_training(job: Path) -> None:
    """The system refuses to let a file grow, as where no space is left."""
    then = (
        "import resource, logging; done = recorder.samples;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "import time; end = time.time() + 0.5\n"
        "while time.time() < end: pass\n"
        "recorder.stop(); print('trained', flush=True)"
    )
    with start(job, then) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (0, b"trained\n")
    assert err.count(b"write fails") == 1
    lines = Counter(line["Dimension"] for line in written_whole(job))
    assert lines["UsedBytes"] > 20


def written_whole(job: Path) -> list[dict[str, Any]]:
    """The samples of the lines that are whole."""
    texts = [path.read_text() for path in job.glob("system/incremental/*/*")]
    return [json.loads(line) for text in texts for line in re.findall(r".*\n", text)]


@pytest.mark.parametrize("interval", [0.0, -1.0, float("nan"), float("inf"), 1e12, "x", True])
def test_an_interval_that_is_none(job: Path, interval: Any) -> None:
    with pytest.raises(UsageError, match="give a number above 0"):
        SystemRecorder(job, interval)


@pytest.mark.parametrize(
    "node", ["", "a/b", ".hidden", "nul\0", "a\nb", "n_rank3", "x.json", "x.json.gz", 5]
)
def test_a_node_that_no_file_can_be_named_by(job: Path, node: Any) -> None:
    with pytest.raises(UsageError, match="is no name for a node"):
        SystemRecorder(job, node=node)


def test_arguments_that_make_no_sense(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="a name for a node of 181 letters"):
        SystemRecorder(job, node="n" * 181)
    with pytest.raises(UsageError, match="give True, False or 'auto'"):
        SystemRecorder(job, gpu="yes")  # type: ignore[arg-type]
    for rank in (-1, "0", 1.0, True, 10**9):
        with pytest.raises(UsageError, match="ranks are whole numbers from 0 to 999,999,999"):
            rank_of(rank)  # type: ignore[arg-type]
    monkeypatch.setenv("RANK", "1000000000")
    with pytest.raises(UsageError, match="a rank of 1000000000"):
        rank_of(None)
    with SystemRecorder(job, node="n" * 180) as recorder:
        pass
    assert recorder.samples > 0
