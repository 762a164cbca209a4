"""What is in the lake is right at every instant: killed writers, racing writers, readers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.store.verify import verify

CONTENT = """
    SELECT run, node, hour, kind, ts_ns, dur_ns, name, process_name, tid, step, args::VARCHAR, seq
    FROM events ORDER BY ALL
"""
SAMPLES = "SELECT run, node, hour, ts_ns, device, metric, value, seq FROM metrics ORDER BY ALL"


def write_job(folder: Path, files: int = 40, events: int = 500) -> None:
    """A job of ``files`` timeline files and as many system files, on two nodes."""
    rng = random.Random(files * 1000 + events)
    for number in range(files):
        node, start = f"algo-{number % 2 + 1}", 1_596_668_220 + 60 * number
        timeline = folder / "framework/pevents/2020080522"
        timeline.mkdir(parents=True, exist_ok=True)
        base = {"start_time_since_epoch_in_micros": start * 1_000_000}
        lines = [{"name": "process_name", "ph": "M", "pid": 0, "args": base}]
        for event in range(events):
            ts, dur = event * 1000, rng.randrange(1, 999)
            lines.append({"ph": "X", "name": f"op{event % 7}", "pid": 1, "ts": ts, "dur": dur})
        name = f"{(start + 60) * 1_000_000}_{100 + number % 2}-{node}_model_timeline.json"
        text = "[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]"
        (timeline / name).write_text(text)
        system = folder / "system/incremental/2020080522"
        system.mkdir(parents=True, exist_ok=True)
        samples = (
            {
                "Type": "cpu",
                "Name": "cpu0",
                "Dimension": "CPUUtilization",
                "Value": value,
                "NodeId": node,
                "Timestamp": start + value / 10,
            }
            for value in range(50)
        )
        text = "".join(json.dumps(sample) + "\n" for sample in samples)
        (system / f"{start}.{node}.json").write_text(text)


def content(lake: Path) -> list[Any]:
    with pipeline.Store.open(lake) as store:
        assert verify(store) == []
        return [*store.sql(CONTENT).rows(), *store.sql(SAMPLES).rows()]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    write_job(folder)
    return folder


@pytest.fixture
def clean(job: Path, tmp_path: Path) -> list[Any]:
    """What one undisturbed ingest of the job gives."""
    pipeline.ingest(job, tmp_path / "clean")
    rows = content(tmp_path / "clean")
    assert len(rows) == 40 * 500 + 40 * 50
    return rows


@pytest.fixture
def start(environment: dict[str, str]) -> Callable[..., subprocess.Popen[bytes]]:
    def run(*arguments: object) -> subprocess.Popen[bytes]:
        # Small batches: many commits for a kill to fall between.
        code = (
            "import pipeline.ingestion as i, pipeline.cli; i._BATCH_FILES = 5; pipeline.cli.main()"
        )
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    return run


@pytest.mark.slow
def test_kill_at_any_moment_then_ingest_again(
    job: Path, clean: list[Any], tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    began = time.perf_counter()
    process = start("ingest", job, "--lake", tmp_path / "timing")
    assert process.wait() == 0
    whole = time.perf_counter() - began
    rng = random.Random(7)
    lake = tmp_path / "lake"
    kills = 0
    for _ in range(8):
        process = start("ingest", job, "--lake", lake)
        try:
            process.wait(timeout=rng.uniform(0.2, 0.9) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
            kills += process.wait() == -signal.SIGKILL  # unless it ended in that very moment
        if (lake / "tracelake.json").exists():
            with pipeline.Store.open(lake) as store:
                assert verify(store) == []
    assert kills > 0
    process = start("ingest", job, "--lake", lake)
    assert process.wait() == 0
    assert content(lake) == clean


def test_killed_before_the_commit_shows_nothing(
    job: Path, clean: list[Any], tmp_path: Path, environment: dict[str, str]
) -> None:
    lake = tmp_path / "lake"
    code = (
        "import os, signal, sys, pipeline, pipeline.batch as b\n"
        "b.commit = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "pipeline.ingest(sys.argv[1], sys.argv[2])"
    )
    process = subprocess.run([sys.executable, "-c", code, job, lake], env=environment)
    assert process.returncode == -signal.SIGKILL
    assert list(lake.glob("events/run=job/*/*/*.parquet"))
    assert content(lake) == []
    pipeline.ingest(job, lake)
    assert content(lake) == clean


def test_two_ingests_at_once(
    job: Path, clean: list[Any], tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    lake = tmp_path / "lake"
    processes = [start("ingest", job, "--lake", lake) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert content(lake) == clean


def test_workers_give_the_same_lake(
    job: Path, clean: list[Any], tmp_path: Path, start: Any
) -> None:
    process = start("ingest", job, "--lake", tmp_path / "lake", "--workers", "2")
    assert process.wait() == 0
    assert content(tmp_path / "lake") == clean


def test_a_file_that_grew_shows_its_new_content_once(tmp_path: Path) -> None:
    trace, lake = tmp_path / "grows.json", tmp_path / "lake"
    event = '{"ph":"X","name":"a","ts":%d,"dur":1,"pid":1,"tid":1}'
    trace.write_text("[" + event % 1)
    pipeline.ingest(trace, lake)
    trace.write_text("[" + event % 1 + "," + event % 2 + "," + event % 3)
    report = pipeline.ingest(trace, lake)
    assert (report.files, report.unchanged) == (1, 0)
    with pipeline.Store.open(lake) as store:
        assert store.sql("SELECT ts_ns FROM events ORDER BY ts_ns")["ts_ns"].to_list() == [
            1000,
            2000,
            3000,
        ]
        assert verify(store) == []
    report = pipeline.ingest(trace, lake)
    assert (report.files, report.unchanged) == (0, 1)


def test_a_writer_whose_clock_is_behind_still_wins(tmp_path: Path) -> None:
    from pipeline.store.ledger import new_version

    future = time.time_ns() // 1000 + 10**12
    assert new_version(future) == future + 1


READER = """
import sys, pathlib, duckdb
lake, stop = sys.argv[1:]
seen = set()
connection = duckdb.connect(lake + "/lake.duckdb", read_only=True)
while True:
    last = pathlib.Path(stop).exists()
    for _ in range(3):
        got = connection.execute(
            "SELECT (SELECT sum(event_rows) FROM _live_sources WHERE run = 'job'), count(*)"
            " FROM (SELECT s.ingest_id FROM _live_sources s JOIN events e USING (ingest_id)"
            " WHERE s.run = 'job')"
        ).fetchall()[0]
        by_file = connection.execute(
            "SELECT count(*) FROM (SELECT s.event_rows, count(e.seq) AS rows FROM _live_sources s"
            " LEFT JOIN events e USING (ingest_id) GROUP BY s.ingest_id, s.event_rows"
            " HAVING rows NOT IN (0, s.event_rows))"
        ).fetchall()[0][0]
        assert by_file == 0, by_file
        seen.add(connection.execute("SELECT count(*) FROM events").fetchall()[0][0])
    if last:
        break
print(sorted(seen))
"""


def test_queries_during_ingest_compaction_and_delete(
    job: Path,
    tmp_path: Path,
    environment: dict[str, str],
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    lake, stop = tmp_path / "lake", tmp_path / "stop"
    pipeline.ingest(job / "system", lake, run="other")
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(lake), str(stop)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    for arguments in (
        ("ingest", job / "framework", "--lake", lake, "--run", "job"),
        ("compact", "--lake", lake),
        ("delete", "--run", "job", "--lake", lake),
        ("ingest", job / "framework", "--lake", lake, "--run", "job"),
        ("compact", "--lake", lake),
    ):
        process = start(*arguments)
        _, said = process.communicate()
        assert process.returncode == 0, said
    stop.touch()
    out, error = reader.communicate(timeout=120)
    assert reader.returncode == 0, error.decode()
    seen = json.loads(out)
    # Batches of 5 files of 500 events: only whole batches are ever seen.
    assert {count % 2500 for count in seen} == {0}
    assert seen[-1] == 40 * 500


def test_compaction_keeps_every_row(
    job: Path, clean: list[Any], tmp_path: Path, start: Any
) -> None:
    lake = tmp_path / "lake"
    assert start("ingest", job, "--lake", lake).wait() == 0
    before = list(lake.glob("events/run=job/*/*/*.parquet"))
    assert start("compact", "--lake", lake, "--grace", "0").wait() == 0
    after = list(lake.glob("events/run=job/*/*/*.parquet"))
    assert content(lake) == clean
    assert len(after) == len({path.parent for path in before}) < len(before)
    # Nothing is left to do, and nothing is done.
    assert start("compact", "--lake", lake, "--grace", "0").wait() == 0
    assert list(lake.glob("events/run=job/*/*/*.parquet")) == after


def test_compaction_of_a_lake_that_is_not_on_disk(job: Path) -> None:
    from pipeline.store.compact import compact

    lake = "memory://compacted"
    system = sorted((job / "system").rglob("*.json"))
    pipeline.ingest(system[:20], lake, run="job")
    pipeline.ingest([*system[20:], job / "framework"], lake, run="job")
    with pipeline.Store.open(lake) as store:
        files = len(store.lake.fs.find(store.lake.path("metrics")))
        report = compact(store, "job", 0)
        assert report.files_before > report.files_after
        assert len(store.lake.fs.find(store.lake.path("metrics"))) < files
        assert verify(store) == []
        query = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM metrics)"
        assert store.sql(query).rows() == [(40 * 500, 40 * 50)]


STORE_READER = """
import sys, pathlib, pipeline
lake, stop = sys.argv[1:]
asked = 0
with pipeline.Store.open(lake) as store:
    while not pathlib.Path(stop).exists():
        rows = store.sql("SELECT name, count(*) FROM events GROUP BY name").rows()
        assert len(rows) == 1 and rows[0][1] == 800, rows
        asked += 1
print(asked)
"""


@pytest.mark.slow
def test_queries_while_dead_files_are_removed(tmp_path: Path, environment: dict[str, str]) -> None:
    """A file may go between its listing and its opening; then the query is asked again."""
    from pipeline.store.compact import compact

    lake, stop, folder = tmp_path / "lake", tmp_path / "stop", tmp_path / "job"
    folder.mkdir()

    def write(generation: int) -> None:
        event = f'{{"ph":"X","name":"g{generation}","ts":1,"dur":1,"pid":1}}'
        for number in range(4):
            (folder / f"{number}.json").write_text(f"[{','.join([event] * 200)}]")

    write(0)
    pipeline.ingest(folder, lake)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", STORE_READER, str(lake), str(stop)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    removed = 0
    with pipeline.Store.open(lake) as store:
        for generation in range(1, 60):
            write(generation)
            pipeline.ingest(folder, lake)
            removed += compact(store, None, 0).removed
    assert removed >= 59
    stop.touch()
    for reader in readers:
        out, error = reader.communicate(timeout=120)
        assert reader.returncode == 0, error.decode()
        assert int(out) > 0


def test_grace_counts_from_when_a_file_is_no_longer_shown(tmp_path: Path) -> None:
    """Files written days ago that a compaction has just merged may still be open somewhere."""
    from pipeline.store.compact import compact

    lake = tmp_path / "lake"
    for number in range(2):
        trace = tmp_path / f"{number}.json"
        trace.write_text('[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}]')
        pipeline.ingest(trace, lake, run="job")
    for path in lake.rglob("*.parquet"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    with pipeline.Store.open(lake) as store:
        report = compact(store, "job")
        assert (report.files_before, report.files_after, report.removed) == (2, 1, 0)
        assert compact(store, "job", 0).removed == 4
        assert verify(store) == []
        assert store.sql("SELECT count(*) FROM events").item() == 2


def test_a_deleted_file_does_not_come_back(tmp_path: Path) -> None:
    """Its older reading stands in a ledger file that another run still needs."""
    from pipeline.store.compact import compact, delete_run

    lake, jobs = tmp_path / "lake", tmp_path / "jobs"
    for job in ("j1", "j2"):
        folder = jobs / job / "framework"
        folder.mkdir(parents=True)
        (folder / "t.json").write_text('[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}]')
    pipeline.ingest(jobs, lake)
    pipeline.ingest(jobs / "j1", lake, run="other")
    with pipeline.Store.open(lake) as store:
        delete_run(store, "other")
        for _ in range(3):
            compact(store, None, 0)
            assert store.runs()["run"].to_list() == ["j2"]
            assert verify(store) == []


def test_a_compacted_copy_never_hides_a_newer_reading(tmp_path: Path) -> None:
    from pipeline.store import compact as module

    trace, lake = tmp_path / "job.json", tmp_path / "lake"
    event = '{"ph":"X","name":"%s","ts":%d,"dur":1,"pid":1,"tid":1}'
    for number in range(2):
        (tmp_path / f"f{number}.json").write_text("[" + event % ("old", number) + "]")
    pipeline.ingest(tmp_path / "f0.json", lake, run="job")
    pipeline.ingest(tmp_path / "f1.json", lake, run="job")
    with pipeline.Store.open(lake) as store:
        original = module.commit_table

        def commit_late(*arguments: Any) -> None:
            (tmp_path / "f1.json").write_text("[" + event % ("newer", 5) + "]")
            pipeline.ingest(tmp_path / "f1.json", lake, run="job")
            original(*arguments)

        module.commit_table = commit_late
        try:
            module.compact(store, "job", 0)
        finally:
            module.commit_table = original
        assert sorted(store.run("job").events()["name"]) == ["newer", "old"]
        assert verify(store) == []
    assert not trace.exists()


def test_deleted_run_can_be_ingested_again(job: Path, clean: list[Any], tmp_path: Path) -> None:
    from pipeline.store.compact import compact, delete_run

    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    with pipeline.Store.open(lake) as store:
        assert delete_run(store, "job") == 80
        assert store.runs().is_empty()
        compact(store, None, 0)
        assert list(lake.glob("events/run=job/*/*/*.parquet")) == []
    pipeline.ingest(job, lake)
    assert content(lake) == clean


def test_verify_notices_a_lost_file(job: Path, tmp_path: Path, start: Any) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    next(lake.glob("events/run=job/*/*/*.parquet")).unlink()
    process = start("verify", "--lake", lake)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert b": event_rows: ledger 500, parquet 0" in out


def test_the_database_beside_the_lake_works_from_anywhere(
    job: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    ask = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True);"
        "print(c.execute('SELECT count(*) FROM events').fetchall()[0][0])"
    )
    alone = {key: value for key, value in environment.items() if key != "PYTHONPATH"}

    def count(place: Path) -> str:
        command = [sys.executable, "-c", ask, str(place / "lake.duckdb")]
        return subprocess.check_output(command, cwd="/", env=alone, text=True).strip()

    assert count(lake) == "20000"
    moved = tmp_path / "moved"
    lake.rename(moved)
    pipeline.ingest(job, moved)
    assert count(moved) == "20000"
