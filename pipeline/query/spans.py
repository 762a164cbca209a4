"""Where the steps of a run lie in time, and by which clock; what there is none of is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.errors import UsageError
from pipeline.query.window import StepRange
from pipeline.sqlfiles import sql_text

if TYPE_CHECKING:
    from pipeline.store.lake import Store

__all__ = ["clock_of", "find_steps", "interval_of", "known_mode"]


def clock_of(store: Store, run: str) -> str:
    """The clock on which times of a run compare: epoch or trace.

    Raises ``UsageError`` where they do not.
    """
    counts = dict(store.sql(sql_text("queries/run_clocks"), {"run": run}).rows())
    if counts.get("trace", 0) > 1 and "epoch" not in counts:
        raise UsageError(
            f"the times of run {run!r} do not compare: its {counts['trace']} files have "
            "no common zero; ingest each as a run of its own"
        )
    return "trace" if counts and "epoch" not in counts else "epoch"


def interval_of(store: Store, run: str, steps: StepRange) -> tuple[int, int]:
    """First and last nanosecond of a range of steps.

    Raises ``UsageError`` as ``find_steps``, and where the second does not start after the first.
    """
    found = find_steps(store, run, steps)
    if found is None:
        raise UsageError(
            f"steps {steps} of run {run!r} are no interval: the second does not start after the "
            "first"
        )
    return found


def find_steps(store: Store, run: str, steps: StepRange) -> tuple[int, int] | None:
    """First and last nanosecond of a range of steps; None where they are there, but the second
    does not start after the first. Raises ``UsageError`` where there are none.
    """
    bounds = {
        "run": run, "first": steps.first, "until": steps.until, "mode": steps.mode,
        "clock": clock_of(store, run),
    }  # fmt: skip
    if steps.first is not None and steps.until is not None:
        ((start, end),) = store.sql(sql_text("queries/two_steps"), bounds).rows()
        if start is not None and end is not None and start <= end:
            return start, end
    found = store.sql(sql_text("queries/run_steps"), bounds).rows()
    ((lowest, highest, has_first, start, end, modes),) = found
    if modes is None:
        raise UsageError(f"run {run!r} has no steps: choose by time instead")
    if lowest is None:
        raise _unknown_mode(run, steps.mode, modes)
    if not has_first:
        raise UsageError(
            f"run {run!r} has no steps {steps}: it has steps from {lowest} to {highest}"
        )
    return None if start is None else (start, end)


def known_mode(store: Store, run: str, mode: str | None) -> str | None:
    """The mode, where steps of the run have it; a run without steps has no wrong ones.

    Raises ``UsageError`` for another.
    """
    if mode is not None:
        query = "SELECT DISTINCT mode FROM steps WHERE run = $run ORDER BY mode"
        modes = store.sql(query, {"run": run})["mode"].to_list()
        if modes and mode not in modes:
            raise _unknown_mode(run, mode, modes)
    return mode


def _unknown_mode(run: str, mode: str | None, modes: Iterable[str]) -> UsageError:
    return UsageError(f"run {run!r} has no mode {mode!r}: it has {', '.join(modes)}")
