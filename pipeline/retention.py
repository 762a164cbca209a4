"""Lets go of old runs."""

from __future__ import annotations

from pipeline.errors import UsageError
from pipeline.sqlfiles import sql_text
from pipeline.store.compact import expire_run
from pipeline.store.lake import Store

__all__ = ["delete_expired", "expired_runs"]


def expired_runs(
    store: Store, keep_days: float | None = None, keep_runs: int | None = None
) -> list[str]:
    """The runs that are not kept: those with nothing committed within ``keep_days``, without the
    newest ``keep_runs``. None where neither is given.

    Raises ``UsageError`` for negative numbers.
    """
    if (keep_days is not None and keep_days < 0) or (keep_runs is not None and keep_runs < 0):
        raise UsageError("keep_days and keep_runs are numbers from 0 on")
    kept = {"keep_days": keep_days, "keep_runs": keep_runs}
    runs: list[str] = store.sql(sql_text("queries/expired_runs"), kept)["run"].to_list()
    return runs


def delete_expired(
    store: Store, keep_days: float | None = None, keep_runs: int | None = None
) -> list[str]:
    """Delete the runs of ``expired_runs`` and give their names.

    They are hidden at once; their files go with a later compaction. Their traces are not ingested
    again, though they may still be where they were.
    """
    runs = expired_runs(store, keep_days, keep_runs)
    for run in runs:
        expire_run(store, run)
    return runs
