"""The batch flow: find what is new, read it in tasks, commit it at once, and say what was done."""

# Annotations are not postponed here: Prefect makes the form of a deployment from the types.

import time
from collections import Counter
from dataclasses import replace
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.futures import as_completed
from prefect.task_runners import TaskRunner
from pydantic import Field

from flows.markdown import literal
from flows.runners import Runner, task_runner
from flows.tasks import STORAGE_TASK
from pipeline.batch import BatchResult, Gone, WrittenBatch, commit_batches, write_batch
from pipeline.ingestion import IngestReport, Prepared, prepare
from pipeline.sources import Listing, Source
from pipeline.store.layout import LakePath

__all__ = ["ingest_prepared", "ingest_traces", "show_report"]

_SHOWN = 20

Format = Literal["smdebug", "tensorflow", "horovod", "kineto", "composer", "system", "chrome"]


@task(name="find what is new", **STORAGE_TASK)
def find_new(sources: list[str], lake: str, run: str | None, **options: Any) -> Prepared:
    """``pipeline.ingestion.prepare`` as a task."""
    return prepare(sources, lake, run, **options)


@task(name="read a batch", **STORAGE_TASK)
def read_batch(place: LakePath, batch: list[Source], latest: int) -> WrittenBatch:
    """``pipeline.batch.write_batch`` as a task."""
    return write_batch(place, batch, latest)


@task(name="commit", **STORAGE_TASK)
def commit(place: LakePath, batches: list[WrittenBatch], gone: list[Gone]) -> BatchResult:
    """``pipeline.batch.commit_batches`` as a task."""
    return commit_batches(place, batches, gone)


@flow(name="ingest-traces", persist_result=False)
def ingest_traces(
    source: Annotated[str | list[str], Field(description="Files, folders, globs or URLs")],
    lake: Annotated[str, Field(description="Folder or URL of the lake; made where it is missing")],
    run: Annotated[str | None, Field(description="Name of the run; by default the job's")] = None,
    format: Annotated[Format | None, Field(description="Format of all files")] = None,
    runner: Annotated[Runner, Field(description="Where the reading happens")] = "threads",
    workers: Annotated[int, Field(ge=1, description="Batches that are read at a time")] = 2,
    scheduler: Annotated[str | None, Field(description="Address of a Dask scheduler")] = None,
    late_hours: Annotated[
        float | None, Field(ge=0, description="Hours of a bucket that are listed again; all: null")
    ] = None,
    storage_options: Annotated[
        dict[str, Any] | None, Field(description="Arguments of the file systems")
    ] = None,
) -> IngestReport:
    """Read what is new into a lake: all of it becomes visible at once, or nothing.

    Fails where there is nothing to read, or the storage refuses for good. Files that cannot be
    read are named in the report and in the ledger, and stop nothing.
    """
    started = time.perf_counter()
    sources = [source] if isinstance(source, str) else source
    prepared = find_new(
        sources,
        lake,
        run,
        format=format,
        storage_options=storage_options,
        listing=Listing(late_hours),
    )
    report = ingest_prepared(prepared, task_runner(runner, workers, scheduler))
    report = replace(report, seconds=round(time.perf_counter() - started, 3))
    show_report(report)
    return report


def ingest_prepared(prepared: Prepared, runner: TaskRunner[Any]) -> IngestReport:
    """Read what was found in tasks and commit it at once; what was read becomes a table."""
    started = time.perf_counter()
    batches = prepared.batches
    if not batches and not prepared.gone:
        return prepared.report
    written = _read(prepared, batches, runner) if batches else []
    result = commit(prepared.place, written, list(prepared.gone))
    show_rejects(written)
    report = prepared.report.plus(result)
    return replace(report, seconds=round(time.perf_counter() - started, 3))


def _read(
    prepared: Prepared, batches: list[list[Source]], runner: TaskRunner[Any]
) -> list[WrittenBatch]:
    """Read all batches; the progress of it is an artifact while it lasts."""
    told = {"key": "ingest-progress", "description": "Batches read"}
    progress = cast("UUID", create_progress_artifact(0.0, **told))
    written = []
    with runner:
        futures = [
            runner.submit(
                read_batch,
                {"place": prepared.place, "batch": batch, "latest": prepared.latest},
            )
            for batch in batches
        ]
        for future in as_completed(futures):
            written.append(future.result())
            update_progress_artifact(progress, 100 * len(written) / len(futures))
    return written


def show_rejects(written: list[WrittenBatch]) -> None:
    """A table of what was read: files, events, and what was rejected for which reason."""
    rows = [row for batch in written for row in batch.rows]
    table = []
    for form in sorted({row.format or "" for row in rows}):
        of_format = [row for row in rows if row.format == form]
        reasons = Counter(reject["reason"] for row in of_format for reject in row.rejects)
        rejected = sum(row.rejected for row in of_format)
        if rejected > reasons.total():
            reasons["more than the ledger keeps of a file"] = rejected - reasons.total()
        table.append(
            {
                "format": form,
                "files": len(of_format),
                "unreadable": sum(row.error is not None for row in of_format),
                "events": sum(row.event_rows for row in of_format),
                "metrics": sum(row.metric_rows for row in of_format),
                "rejected": rejected,
                "reasons": "; ".join(f"{why} ({n})" for why, n in reasons.most_common()),
            }
        )
    create_table_artifact(table, key="ingest-files", description="What was read, by format")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def show_report(report: IngestReport) -> None:
    """A summary in Markdown, and a line of it in the log."""
    line = (
        f"{_files(report.files)} with {report.events:,} events and {report.metrics:,} metrics, "
        f"{report.rejected:,} pieces rejected, {_files(report.unchanged)} unchanged"
    )
    get_run_logger().info("%s in %.1f s", line, report.seconds)
    failed = "".join(f"\n- {literal(failure.reason)}" for failure in report.failed[:_SHOWN])
    more = len(report.failed) - _SHOWN
    title = literal(", ".join(report.runs)) or "Nothing new"
    text = (
        f"# {title}\n\n{line}, in {report.seconds:.1f} s.\n\nThe lake is {literal(report.lake)}.\n"
    )
    if failed:
        text += f"\n## Files that could not be read\n{failed}\n"
    if more > 0:
        text += f"\nand {more} more: `tracelake sources` has them all.\n"
    create_markdown_artifact(text, key="ingest-summary", description="What the ingest did")
