"""The files of a timeline as it grows: when they are closed, and what those that are not hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.errors import UsageError
from pipeline.record.files import OpenFile, hour_of
from pipeline.record.timeline import Timeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("limit", [{"max_bytes": 500}, {"max_seconds": 0.3}])
def test_files_are_closed_when_they_are_large_or_old(job: Path, limit: dict[str, Any]) -> None:
    timeline = Timeline(job, "n1", **limit)
    second = 10**9
    for tick in range(40):
        timeline.slice("phase", f"event {tick}", tick * second // 4, tick * second // 4 + 100)
    timeline.close()
    files = sorted(job.rglob("*_pythontimeline.json"))
    assert len(files) > 4
    names = [e["name"] for f in files for e in json.loads(f.read_text()) if e["ph"] == "X"]
    assert names == [f"event {tick}" for tick in range(40)]
    ends = [int(path.name.partition("_")[0]) for path in files]
    assert ends == sorted(ends)
    assert (job / "framework" / "training_job_end.ts").exists()


def test_a_file_that_can_grow_no_more_is_followed_by_another(job: Path) -> None:
    """As where the disk is full for a while: what was written is read, and what comes after."""
    script = """
import resource, sys, time
from pipeline.record.timeline import Timeline
start = time.perf_counter_ns()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
timeline = Timeline(sys.argv[1], "n1")
for number in range(1_100):
    ts = start + number * 1_000_000
    timeline.slice("Forward", f"m{number}", ts, ts + 1)
timeline.close()
"""
    subprocess.run([sys.executable, "-c", script, str(job)], check=True)
    paths = list(job.glob("framework/pevents/*/*.json*"))
    assert sorted(path.suffix for path in paths) == [".json", ".tmp", ".tmp"]
    report = pipeline.ingest(job, job.parent / "lake")
    assert report.failed == ()
    with pipeline.Store.open(job.parent / "lake") as store:
        names = store.sql("SELECT name FROM events ORDER BY ts_ns")["name"].to_list()
    # Of each file that was full the events of its last quarter of a second may be missing.
    assert (names[0], names[-1], len(names)) == ("m0", "m1099", len(set(names)))
    assert len(names) >= 1_100 - 251 * 2


def test_what_a_training_did_before_it_hangs_is_in_the_file(job: Path) -> None:
    timeline = Timeline(job, "n1")
    start = time.perf_counter_ns()
    for number in range(20):
        ts = start + number * 1_000_000
        timeline.slice("Forward", f"m{number}", ts, ts + 1)
    until = time.monotonic() + 30
    while '"m19"' not in "".join(path.read_text() for path in job.rglob("*.json.tmp")):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert pipeline.ingest(job, job.parent / "lake", job_ended=True).events == 20
    timeline.close()


def test_a_file_is_closed_by_its_age_where_nothing_happens(job: Path) -> None:
    timeline = Timeline(job, "n1", max_seconds=0.5)
    start = time.perf_counter_ns()
    timeline.slice("Forward", "only", start, start + 1)
    until = time.monotonic() + 30
    while not list(job.rglob("*_pythontimeline.json")):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [path for path in job.rglob("*.tmp") if not path.name.startswith(".")] == []
    assert slice_names(job) == ["only"]
    timeline.close()
    assert slice_names(job) == ["only"]


def test_a_file_ends_with_its_hour(job: Path) -> None:
    timeline = Timeline(job, "n1", max_seconds=10**6)
    now_ns = time.time_ns()
    into_hour = now_ns % (3600 * 10**9)
    hour = time.perf_counter_ns() - into_hour
    second = 10**9
    for number, at in enumerate((-2 * second, second, 2 * second)):
        timeline.slice("Forward", f"m{number}", hour + at - 1, hour + at)
    timeline.close()
    files = sorted(job.rglob("*_pythontimeline.json"))
    assert '"m0"' in files[0].read_text()
    assert '"m2"' in files[-1].read_text()
    assert '"m2"' not in files[0].read_text()
    assert files[-1].parent.name == hour_of((now_ns - into_hour) / 10**9)


def test_what_is_forked_from_a_writer_is_none(job: Path) -> None:
    """As the workers of a data loader, which may outlive a training that is killed."""
    script = """
import os, signal, sys
from pipeline.record.timeline import Timeline
timeline = Timeline(sys.argv[1], "n1")
if os.fork() == 0:
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
signal.pause()
"""
    command = [sys.executable, "-c", script, str(job)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        marker = job / "framework" / "training_job_end.ts"
        Timeline(job, "n2").close()
        assert not marker.exists()
        process.kill()
        process.wait()
        Timeline(job, "n3").close()
        assert marker.exists()


def test_a_forked_process_writes_its_own_files_and_no_others(job: Path) -> None:
    """Under the number that its thread has there."""
    script = """
import os, sys, threading
from pathlib import Path
from pipeline.record.timeline import Timeline
timeline = Timeline(Path(sys.argv[1], "parent"), "n1")
timeline.slice("Forward", "before", 0, 1)
child = os.fork()
if child == 0:
    timeline.slice("Forward", "after", 1, 2)
    timeline.close()
    own = Timeline(Path(sys.argv[1], "child"), "n1")
    own.slice("Forward", str(threading.get_native_id()), 0, 1)
    own.close()
    os._exit(0)
os.waitpid(child, 0)
timeline.close()
"""
    subprocess.run([sys.executable, "-c", script, str(job)], check=True)

    def slices(folder: str) -> list[dict[str, Any]]:
        (path,) = (job / folder).rglob("*_pythontimeline.json")
        return [event for event in json.loads(path.read_text()) if event["ph"] == "X"]

    assert [event["name"] for event in slices("parent")] == ["before"]
    (event,) = slices("child")
    assert event["name"] == str(event["tid"])


def test_files_whose_events_touch_lose_none(job: Path) -> None:
    """One is closed, by the time of its end, where the next begins: in the same microsecond."""
    timeline = Timeline(job, "n1", max_bytes=1)
    for tick in range(20):
        timeline.slice("phase", f"event {tick}", tick * 10**9, (tick + 1) * 10**9)
    timeline.close()
    assert slice_names(job) == sorted(f"event {tick}" for tick in range(20))


def test_two_writers_of_a_process_never_share_a_name(job: Path) -> None:
    """Their files end in the same microseconds, and are named at the same time."""
    together = threading.Barrier(2, timeout=60)

    def write(own: str) -> None:
        timeline = Timeline(job, "n1", max_bytes=1)
        for tick in range(200):
            together.wait()
            timeline.slice("phase", f"{own} {tick}", tick * 10**9, (tick + 1) * 10**9)
        timeline.close()

    writers = [threading.Thread(target=write, args=(own,)) for own in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert slice_names(job) == sorted(f"{own} {tick}" for own in "ab" for tick in range(200))
    assert list(job.rglob("*.tmp")) == []


def test_a_folder_that_is_removed_leaves_no_claim_of_a_name(job: Path) -> None:
    """While a file in it is open, which cannot be closed then."""
    file = OpenFile(job / "first.json")
    shutil.rmtree(job)
    with pytest.raises(FileNotFoundError):
        file.close(job / "second.json")
    assert list(job.iterdir()) == []


@pytest.mark.parametrize("limit", ["max_bytes", "max_seconds"])
@pytest.mark.parametrize("most", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_limits_that_make_no_sense(job: Path, limit: str, most: Any) -> None:
    with pytest.raises(UsageError, match=f"{limit} of .*: give a number above 0"):
        Timeline(job, "n1", **{limit: most})
    assert not job.exists()


def slice_names(job: Path) -> list[str]:
    return sorted(
        event["name"]
        for path in job.rglob("*_pythontimeline.json")
        for event in json.loads(path.read_text())
        if event["ph"] == "X"
    )
