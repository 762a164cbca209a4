"""The follower: ingests a job while it runs, and ends when the job has ended."""

# Annotations are not postponed here: Prefect makes the form of a deployment from the types.

from dataclasses import replace
from typing import Annotated, Any

from prefect import flow, get_run_logger
from pydantic import Field

from flows.ingest import ingest_prepared, show_report
from flows.runners import Runner, task_runner
from pipeline.follow import JobFollower
from pipeline.ingestion import IngestReport, Prepared

__all__ = ["follow_job"]


@flow(name="follow-job", persist_result=False)
def follow_job(
    source: Annotated[str, Field(description="Folder or URL of the job")],
    lake: Annotated[str, Field(description="Folder or URL of the lake; made where it is missing")],
    run: Annotated[str | None, Field(description="Name of the run; by default the job's")] = None,
    poll_seconds: Annotated[float, Field(gt=0, description="Between two looks")] = 10,
    settle_seconds: Annotated[
        float, Field(ge=0, description="A file that changed since then waits for the next look")
    ] = 2,
    grace_seconds: Annotated[
        float, Field(ge=0, description="From the signal to stop to the end of the job")
    ] = 60,
    patience_seconds: Annotated[
        float, Field(ge=0, description="How long a storage that fails is waited for")
    ] = 300,
    late_hours: Annotated[
        float | None, Field(ge=0, description="Hours of a bucket that are listed again; all: null")
    ] = 1,
    runner: Annotated[Runner, Field(description="Where the reading happens")] = "threads",
    workers: Annotated[int, Field(ge=1, description="Batches that are read at a time")] = 2,
    scheduler: Annotated[str | None, Field(description="Address of a Dask scheduler")] = None,
    storage_options: Annotated[
        dict[str, Any] | None, Field(description="Arguments of the file systems")
    ] = None,
) -> None:
    """Wait for a job's first data, ingest what appears, and finish when the job has ended.

    The end is ``training_job_end.ts``, or the grace time after the signal to stop. Then the files
    that are still open are taken too: the lake is what one ingest of the finished job gives.
    """
    logger = get_run_logger()

    def ingest(prepared: Prepared) -> IngestReport:
        # A runner is used up when it is closed: each look has its own.
        return ingest_prepared(prepared, task_runner(runner, workers, scheduler))

    follower = JobFollower(
        source,
        lake,
        run,
        poll_seconds=poll_seconds,
        settle_seconds=settle_seconds,
        grace_seconds=grace_seconds,
        patience_seconds=patience_seconds,
        late_hours=late_hours,
        storage_options=storage_options,
        ingest=ingest,
        tell=logger.info,
    )
    total = IngestReport(lake)

    def show(report: IngestReport) -> None:
        nonlocal total
        runs = tuple(sorted({*total.runs, *report.runs}))
        seconds = total.seconds + report.seconds
        total = replace(total.plus(report), runs=runs, seconds=seconds)
        show_report(report)

    logger.info("following %s", source)
    follower.follow(show)
    logger.info("the job has ended")
    show_report(total)
