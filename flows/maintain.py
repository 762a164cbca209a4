"""Keeps a lake small and quick: old runs go, small files are merged, dead files are removed."""

# Annotations are not postponed here: Prefect makes the form of a deployment from the types.

from typing import Annotated, Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from pydantic import Field

from flows.markdown import literal
from flows.tasks import STORAGE_TASK
from pipeline.retention import delete_expired
from pipeline.store.compact import DEFAULT_GRACE_SECONDS, CompactReport, compact
from pipeline.store.lake import Store

__all__ = ["maintain_lake"]

Options = dict[str, Any] | None


@task(name="let go of old runs", **STORAGE_TASK)
def let_go(
    lake: str, keep_days: float | None, keep_runs: int | None, options: Options
) -> list[str]:
    """``pipeline.retention.delete_expired`` as a task."""
    with Store.open(lake, options) as store:
        return delete_expired(store, keep_days, keep_runs)


@task(name="compact", **STORAGE_TASK)
def merge_files(lake: str, grace_seconds: float, options: Options) -> CompactReport:
    """``pipeline.store.compact.compact`` as a task."""
    with Store.open(lake, options) as store:
        return compact(store, grace_seconds=grace_seconds)


@flow(name="maintain-lake", persist_result=False)
def maintain_lake(
    lake: Annotated[str, Field(description="Folder or URL of the lake")],
    keep_days: Annotated[
        float | None, Field(ge=0, description="Keep runs that got something within so many days")
    ] = None,
    keep_runs: Annotated[int | None, Field(ge=0, description="Keep so many of the newest")] = None,
    grace_seconds: Annotated[
        float, Field(ge=0, description="How long a dead file may still be read")
    ] = DEFAULT_GRACE_SECONDS,
    storage_options: Annotated[
        dict[str, Any] | None, Field(description="Arguments of the file systems")
    ] = None,
) -> CompactReport:
    """Delete the runs that no rule keeps (all are kept where none is given), then compact."""
    gone = let_go(lake, keep_days, keep_runs, storage_options)
    report = merge_files(lake, grace_seconds, storage_options)
    line = (
        f"{len(gone)} runs deleted, {report.files_before} files merged into {report.files_after}, "
        f"{report.removed} dead files removed"
    )
    get_run_logger().info(line)
    names = "".join(f"\n- {literal(run)}" for run in gone)
    create_markdown_artifact(
        f"# {literal(lake)}\n\n{line}.\n{names}",
        key="maintain-summary",
        description="What was put in order",
    )
    return report
