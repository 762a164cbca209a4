"""Deployments: of prefect.yaml with a worker, and of a process that serves; the other flows."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

import pipeline
from tests.compat.jobs import event, write_framework
from tests.flows.helpers import artifacts, rows_of, wait_for, write_job
from tests.s3.server import BUCKET, S3

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_api")]


def runs_of(deployment: str) -> list[Any]:
    """The flow runs of a deployment in the order of their schedule, also those to come."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            found = client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            return []
        runs = [run for run in client.read_flow_runs() if run.deployment_id == found.id]
    return sorted(runs, key=lambda run: run.expected_start_time)


def is_over(run: Any) -> bool:
    return run.state is not None and run.state.is_final()


def first_two(runs: list[Any]) -> list[Any] | None:
    """The first two runs where both have ended."""
    two = runs[:2]
    return two if len(two) == 2 and all(map(is_over, two)) else None


def after(first: Any, runs: list[Any]) -> Any:
    """A run that has ended, and began when the first one had ended; None where there is none."""
    later = (r for r in runs if is_over(r) and r.start_time and r.start_time >= first.end_time)
    return next(later, None)


def test_a_process_that_serves_runs_on_time(
    tmp_path: Path, flow_environment: dict[str, str]
) -> None:
    from prefect.client.orchestration import get_client

    job, lake = write_job(tmp_path / "job"), tmp_path / "lake"
    command = [
        sys.executable, "-m", "flows", "serve", "--source", "job", "--lake", "lake",
        "--every", "5s", "--name", "served",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        serving = subprocess.Popen(command, cwd=tmp_path, env=flow_environment, stdout=log,
                                   stderr=log)  # fmt: skip
        try:
            name = "ingest-traces/served"
            first, second = wait_for(lambda: first_two(runs_of(name)))
            # On a slow machine the second may begin before the first ends, and read the same.
            later = wait_for(lambda: after(first, runs_of(name)))
        finally:
            serving.terminate()
            serving.wait(30)
    assert (first.state.name, second.state.name) == ("Completed", "Completed"), first.state
    assert later.state.name == "Completed", later.state
    assert second.expected_start_time - first.expected_start_time == timedelta(seconds=5)
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake).equals(rows_of(tmp_path / "plain"))
    assert "0 files with 0 events" in artifacts("ingest-summary", later)[0]
    with get_client(sync_client=True) as client:
        full = client.read_deployment_by_name("ingest-traces/served-full")
    assert first.parameters["late_hours"] == 1.0
    assert full.parameters["late_hours"] is None
    assert [schedule.schedule.interval for schedule in full.schedules] == [timedelta(days=1)]


@pytest.mark.parametrize(
    ("every", "says"),
    [
        ("10", "give a time such as 90s, 10m or 1h"),
        ("0m", "give a time such as 90s, 10m or 1h"),
        ("soon", "give a time such as 90s, 10m or 1h"),
        ("99999999999999d", "give a time that somebody lives to see"),
    ],
)
def test_an_interval_that_is_none(every: str, says: str, flow_environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "flows", "serve", "--source", "x", "--lake", "y"]
    done = subprocess.run(
        [*command, "--every", every], env=flow_environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"tracelake: --every {every!r}: {says}\n"


def test_a_server_that_is_not_there_is_told_in_one_line(
    flow_environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "flows", "serve", "--source", "x", "--lake", "y"]
    nowhere = {**flow_environment, "PREFECT_API_URL": "http://127.0.0.1:1/api"}
    done = subprocess.run(
        command, env=nowhere, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 6
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "tracelake: no answer from the Prefect server at http://127.0.0.1:1/api"
    )
    assert "Traceback" not in done.stderr


def test_without_prefect_the_error_names_the_extra(environment: dict[str, str]) -> None:
    code = (
        "import sys, runpy; sys.modules['prefect'] = None; "
        "sys.argv = ['flows', 'serve', '--source', 'x', '--lake', 'y']; "
        "runpy.run_module('flows', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "tracelake: prefect is not installed: pip install 'tracelake[prefect]'\n"


def test_the_deployments_of_prefect_yaml(tmp_path: Path, flow_environment: dict[str, str]) -> None:
    from prefect.client.orchestration import get_client

    environment = {**flow_environment, "TRACELAKE_HOME": str(ROOT)}
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    for command in (
        ["work-pool", "create", "tracelake", "--type", "process"],
        ["deploy", "--all", "--prefect-file", "flows/prefect.yaml"],
    ):
        subprocess.run([*prefect, *command], cwd=ROOT, env=environment, check=True,
                       capture_output=True)  # fmt: skip
    with get_client(sync_client=True) as client:
        found = {d.name: d for d in client.read_deployments() if d.work_pool_name == "tracelake"}
        crons = {name: [s.schedule.cron for s in d.schedules] for name, d in found.items()}
        assert crons == {
            "hourly": ["5 * * * *"], "daily": ["50 2 * * *"], "follower": ["*/10 * * * *"],
            "nightly": ["30 3 * * *"], "morning": ["0 6 * * *"],
        }  # fmt: skip
        options = found["follower"].concurrency_options
        assert options is not None
        assert options.collision_strategy.value == "CANCEL_NEW"
        job, lake = write_job(tmp_path / "job", files=40, events=9000), tmp_path / "lake"
        given = {"source": str(job), "lake": str(lake)}
        client.create_flow_run_from_deployment(found["hourly"].id, parameters=given)

    # The first worker is killed with all that it started, when it has begun to read.
    work = [*prefect, "worker", "start", "--pool", "tracelake"]
    with subprocess.Popen(work, env=environment, stdout=subprocess.DEVNULL) as worker:
        wait_for(lambda: (lake / "tracelake.json").exists() or None)
        for process in [*psutil.Process(worker.pid).children(recursive=True), worker]:
            process.kill()
    assert rows_of(lake).is_empty()

    with get_client(sync_client=True) as client:
        run = client.create_flow_run_from_deployment(found["daily"].id, parameters=given)
    subprocess.run([*work, "--run-once"], env=environment, check=True, capture_output=True,
                   timeout=120)  # fmt: skip

    def ended() -> Any:
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(run.id).state
        return state if state is not None and state.is_final() else None

    assert wait_for(ended).name == "Completed"
    pipeline.ingest(job, tmp_path / "plain")
    assert rows_of(lake).equals(rows_of(tmp_path / "plain"))


def test_upkeep_lets_go_of_old_runs_and_merges_files(tmp_path: Path) -> None:
    from flows.maintain import maintain_lake

    lake = tmp_path / "lake"
    for run in ("old", "middle", "new"):
        for part in range(3):
            folder = tmp_path / run / str(part)
            write_framework(folder, [event(run, part, 1)])
            pipeline.ingest(folder, lake, run)
    report = maintain_lake(str(lake), keep_runs=2, grace_seconds=0)
    with pipeline.Store.open(lake) as store:
        assert store.runs()["run"].to_list() == ["middle", "new"]
        assert store.sql("SELECT name, count(*) FROM events GROUP BY 1 ORDER BY 1").rows() == [
            ("middle", 3), ("new", 3),
        ]  # fmt: skip
    assert (report.files_before, report.files_after) == (6, 2)
    assert "1 runs deleted, 6 files merged into 2" in artifacts("maintain-summary")[0]
    assert maintain_lake(str(lake), keep_days=1).files_before == 0
    maintain_lake(str(lake), keep_days=0)
    with pipeline.Store.open(lake) as store:
        assert store.runs().is_empty()


def test_tables_are_handed_on(tmp_path: Path) -> None:
    from flows.publish import publish_tables

    pipeline.ingest(write_job(tmp_path / "job"), tmp_path / "lake")
    paths = publish_tables(str(tmp_path / "lake"), str(tmp_path / "out"), ["runs", "events"])
    assert [Path(path).name for path in paths] == ["runs.parquet", "events.parquet"]
    assert pl.read_parquet(paths[1]).height == 320
    assert pl.read_parquet(paths[0])["events"].to_list() == [320]


def test_tables_are_handed_on_to_a_bucket(s3: S3, tmp_path: Path) -> None:
    from flows.publish import publish_tables

    lake, out = (f"s3://{BUCKET}/{tmp_path.name}/{name}" for name in ("lake", "out"))
    pipeline.ingest(write_job(tmp_path / "job"), lake, storage_options=s3.options)
    assert publish_tables(lake, out, ["runs"], s3.options) == [f"{out}/runs.parquet"]
    with s3.files.open(f"{out}/runs.parquet") as file:
        assert pl.read_parquet(file)["events"].to_list() == [320]
