"""Where the tasks of a flow run: in threads, in processes, or on a Dask cluster.

Tasks get the names of files and leave Parquet in the lake, so that whatever runs them, the same
lake comes out.
"""

from __future__ import annotations

from typing import Any, Literal

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from pipeline.errors import UsageError
from pipeline.extras import extra

__all__ = ["Runner", "task_runner"]

_PATIENCE_SECONDS = 5
Runner = Literal["threads", "processes", "dask"]


def task_runner(runner: Runner, workers: int = 2, scheduler: str | None = None) -> TaskRunner[Any]:
    """A task runner with so many workers.

    ``scheduler`` is the address of a Dask scheduler, as ``tcp://host:8786``; without one ``dask``
    starts a cluster of processes on this machine. Raises ``UsageError`` where prefect-dask is
    missing, ``scheduler`` comes with another runner, or there is none at its address.
    """
    if scheduler is not None and runner != "dask":
        raise UsageError(f"a scheduler is for the runner 'dask', not {runner!r}")
    if runner == "threads":
        return ThreadPoolTaskRunner(max_workers=workers)
    if runner == "processes":
        return ProcessPoolTaskRunner(max_workers=workers)
    if scheduler is not None:
        _reach(scheduler)
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    where = {"cluster_kwargs": local} if scheduler is None else {"address": scheduler}
    dask: TaskRunner[Any] = extra("prefect_dask", "dask").DaskTaskRunner(**where)
    return dask


def _reach(scheduler: str) -> None:
    """Ask a scheduler whether it is there, before anything waits for it."""
    distributed = extra("distributed", "dask")
    try:
        distributed.Client(scheduler, timeout=_PATIENCE_SECONDS, set_as_default=False).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {scheduler}: check scheduler") from error
