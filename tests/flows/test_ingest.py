"""The batch flow on a real Prefect server: every runner, retries, artifacts, and kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

import pipeline
from pipeline.errors import SourceError, UsageError
from tests.flows.helpers import artifacts, rows_of, wait_for, write_job
from tests.s3.server import BUCKET, S3, unreliable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_api")]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path / "job")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.ingestion._BATCH_FILES", 3)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("runner", ["threads", "processes", "dask"])
def test_every_runner_makes_the_same_lake(job: Path, tmp_path: Path, runner: Any) -> None:
    from flows.ingest import ingest_traces

    lake = str(tmp_path / "lake")
    report = ingest_traces(str(job), lake, runner=runner)
    assert (report.files, report.events, report.metrics) == (9, 320, 1)
    with pipeline.Store.open(lake) as store:
        assert store.sql("SELECT count(DISTINCT batch_id), count(*) FROM sources").rows() == [
            (3, 9)
        ]
    # One commit: one file of the ledger beside the one that is always there.
    assert len(list((tmp_path / "lake" / "sources").glob("*.parquet"))) == 2
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake).equals(rows_of(tmp_path / "plain"))
    again = ingest_traces(str(job), lake, runner=runner)
    assert (again.files, again.events, again.unchanged) == (0, 0, 9)


def test_artifacts_say_what_was_done(job: Path, tmp_path: Path) -> None:
    from flows.ingest import ingest_traces

    bad = job / "framework" / "pevents" / "2020080522" / "1_7-algo-1_pythontimeline.json"
    bad.write_text('[{"ph": "X", "name": "a", "pid": 1, "ts": "soon", "dur": 1}]')
    hostile = job / "<img src=x>\n# [no](title) `a`.json.gz"
    hostile.write_bytes(b"\x1f\x8bnothing")
    report = ingest_traces([str(job)], str(tmp_path / "lake"), run="named_*run*")
    assert (report.runs, report.rejected) == (("named_*run*",), 1)
    (row, system) = json.loads(artifacts("ingest-files")[0])
    assert {key: row[key] for key in ("format", "files", "events", "rejected")} == {
        "format": "smdebug", "files": 9, "events": 320, "rejected": 1,
    }  # fmt: skip
    assert row["reasons"].endswith("(1)")
    assert (system["format"], system["metrics"]) == ("system", 1)
    assert artifacts("ingest-progress")[0] == 100
    summary = artifacts("ingest-summary")[0]
    assert summary.startswith("# named\\_\\*run\\*\n")
    assert "\\<img src=x\\> \\# \\[no\\]\\(title\\) \\`a\\`.json.gz" in summary
    assert (
        "10 files with 320 events and 1 metrics, 1 pieces rejected, 0 files unchanged" in summary
    )


def test_a_wrong_source_fails_at_once(tmp_path: Path) -> None:
    from flows.ingest import ingest_traces

    with pytest.raises(SourceError, match="nothing at"):
        ingest_traces(str(tmp_path / "nothing"), str(tmp_path / "lake"))
    assert _attempts("find what is new") == 1


def _attempts(task: str) -> int:
    """How often the newest run of a task was tried."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        runs = [run for run in client.read_task_runs() if run.name.startswith(task)]
    newest = max(runs, key=lambda run: run.start_time or run.expected_start_time)
    return newest.run_count


def test_a_store_that_refuses_is_asked_again(s3: S3, job: Path, tmp_path: Path) -> None:
    from flows.ingest import ingest_traces

    lake = f"s3://{BUCKET}/{tmp_path.name}/lake"
    puts = Counter[str]()

    def refuses_twice(number: int, method: str) -> str:
        puts[method] += 1
        return "refused" if method == "PUT" and puts["PUT"] <= 2 else "passed"

    with unreliable(s3, refuses_twice) as proxy:
        report = ingest_traces(str(job), lake, storage_options=proxy.s3.options)
    assert (report.files, proxy.counts["refused"]) == (9, 2)
    assert _attempts("find what is new") == 3
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake, s3.options).equals(rows_of(tmp_path / "plain"))


@pytest.mark.usefixtures("small_batches")
def test_from_a_bucket_to_a_bucket_where_a_third_goes_wrong(
    s3: S3, job: Path, tmp_path: Path
) -> None:
    from flows.ingest import ingest_traces

    place = f"{BUCKET}/{tmp_path.name}"
    s3.files.put(f"{job}/", f"{place}/job/", recursive=True)
    lake = f"s3://{place}/lake"
    with unreliable(s3) as proxy:
        report = ingest_traces(f"s3://{place}/job", lake, storage_options=proxy.s3.options)
    assert (report.files, report.failed) == (9, ())
    assert min(proxy.counts[fate] for fate in ("dropped", "failed", "late")) >= 3
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake, s3.options).equals(rows_of(tmp_path / "plain"))


def test_a_dask_cluster_reads_from_a_bucket(s3: S3, job: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    from flows.ingest import ingest_traces

    place = f"{BUCKET}/{tmp_path.name}"
    s3.files.put(f"{job}/", f"{place}/job/", recursive=True)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        report = ingest_traces(
            f"s3://{place}/job", f"s3://{place}/lake", runner="dask",
            scheduler=cluster.scheduler_address, storage_options=s3.options,
        )  # fmt: skip
    assert (report.files, report.events) == (9, 320)
    assert rows_of(f"s3://{place}/lake", s3.options).height == 320


def test_a_scheduler_is_for_dask() -> None:
    from flows.runners import task_runner

    with pytest.raises(UsageError, match="for the runner 'dask', not 'threads'"):
        task_runner("threads", scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("scheduler", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_a_scheduler_that_is_not_there(scheduler: str) -> None:
    from flows.runners import task_runner

    with pytest.raises(UsageError, match=f"no Dask scheduler answers at {scheduler}"):
        task_runner("dask", scheduler=scheduler)


def test_a_scheduler_by_its_address(job: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    from flows.ingest import ingest_traces

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        report = ingest_traces(str(job), str(tmp_path / "lake"), runner="dask", scheduler=address)
    assert (report.files, report.events) == (9, 320)


RUN = """
import sys
import pipeline.ingestion
pipeline.ingestion._BATCH_FILES = 2
from flows.ingest import ingest_traces
if __name__ == "__main__":
    ingest_traces(sys.argv[1], sys.argv[2], runner=sys.argv[3])
"""


def _start(
    job: Path, lake: Path, runner: str, environment: dict[str, str], tmp_path: Path
) -> subprocess.Popen[bytes]:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    return subprocess.Popen(
        [sys.executable, str(script), str(job), str(lake), runner],
        env=environment, start_new_session=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_flow_that_is_killed_leaves_nothing_and_its_rerun_heals(
    tmp_path: Path, flow_environment: dict[str, str]
) -> None:
    job, lake = write_job(tmp_path / "job", files=40, events=2000), tmp_path / "lake"
    flow = _start(job, lake, "processes", flow_environment, tmp_path)
    written = wait_for(lambda: list(lake.glob("events/run=job/*/*/*.parquet")) or None)
    os.killpg(flow.pid, signal.SIGKILL)
    flow.wait()
    assert written
    with pipeline.Store.open(lake) as store:
        assert store.sql("SELECT count(*) FROM events").rows() == [(0,)]
    rerun = _start(job, lake, "processes", flow_environment, tmp_path)
    assert rerun.wait(120) == 0
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake).equals(rows_of(tmp_path / "plain"))


def test_a_dask_worker_that_is_killed_is_made_up_for(
    tmp_path: Path, flow_environment: dict[str, str]
) -> None:
    job, lake = write_job(tmp_path / "job", files=40, events=2000), tmp_path / "lake"
    flow = _start(job, lake, "dask", flow_environment, tmp_path)

    def worker() -> psutil.Process | None:
        if not list(lake.glob("events/run=job/*/*/*.parquet")):
            return None
        children = psutil.Process(flow.pid).children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        return workers[0] if workers else None

    wait_for(worker).kill()
    if flow.wait(180) != 0:
        assert _start(job, lake, "dask", flow_environment, tmp_path).wait(180) == 0
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake).equals(rows_of(tmp_path / "plain"))
