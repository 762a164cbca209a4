"""``PandasFrameAnalysis``: statistics of steps and of utilisation from the two frames."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from pipeline import settings
from pipeline.extras import extra
from pipeline.sqlfiles import sql_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JobStats", "PandasFrameAnalysis", "Resource", "StatsBy", "ask_frames"]

_LOGGER = logging.getLogger(__name__)
_RANGES = [(90, 100), (10, 90), (0, 10)]
_MODE = "Step:ModeKeys"


class StatsBy(Enum):
    """What statistics are by."""

    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class Resource(Enum):
    """Types of system metrics."""

    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


_ALL = [Resource.CPU, Resource.GPU, Resource.MEMORY, Resource.IO, Resource.NETWORK]


class JobStats(dict[str, Any]):
    """Statistics by name, which are attributes too; shown as a column."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        frame = extra("pandas", "pandas").DataFrame(list(self.values()), index=list(self))
        return repr(frame)


class PandasFrameAnalysis:
    """Questions to the frames of ``PandasFrame``: system metrics and framework events.

    The frames that are given stay as they are. ``framework_metrics_df`` is a copy with
    ``duration_us``, and with the step of every event: its own number, or that of the step of its
    own process or node that holds it, or -1.
    """

    def __init__(self, system_df: pd.DataFrame, framework_df: pd.DataFrame) -> None:
        self.sys_metrics_df = system_df.reset_index(drop=True)
        self.framework_metrics_df = framework_df.reset_index(drop=True)
        events = self.framework_metrics_df
        events["duration_us"] = events["end_time_us"] - events["start_time_us"]
        events["step"] = self._ask("frame_steps")["step"]

    def get_job_statistics(self) -> JobStats:
        """When the job and its training loop began and ended, and how its time divides.

        Times in microseconds, shares in percent; None where there are no steps.
        """
        (row,) = self._ask("frame_job").astype(object).to_dict("records")
        known = {key: None if _is_missing(value) else value for key, value in row.items()}
        first, last = known.pop("first_event"), known.pop("last_event")
        stats = JobStats(known, training_loop_end=last)
        if stats["start_time"] is None:
            stats |= {"start_time": first, "end_time": last}
        for part in ("initialization", "training_loop", "finalization"):
            value = stats["training_loop_duration" if part == "training_loop" else part]
            whole = stats["job_duration"]
            share = None if value is None else value / whole * 100 if whole else 0.0
            stats[f"{part}_%"] = share
        return stats

    def get_step_statistics(self, by: StatsBy = StatsBy.TRAINING_PHASE) -> pd.DataFrame | None:
        """Mean, minimum, maximum and percentiles of how long steps take, in microseconds, by
        phase, or how long each framework metric or process takes within a step.

        None for what is no ``StatsBy``.
        """
        if not isinstance(by, StatsBy):
            _LOGGER.info("%r is none of StatsBy", by)
            return None
        answer = self._ask("frame_step_statistics", by=by.value)
        return answer.rename(columns={"name": by.value})

    def get_utilization_stats(
        self,
        resource: Resource | Sequence[Resource] | None = None,
        by: StatsBy | None = None,
        phase: str | list[str] | None = None,
    ) -> pd.DataFrame | None:
        """Mean, minimum, maximum and percentiles of the values of resources, by node; with
        ``StatsBy.TRAINING_PHASE`` by the phases of ``get_training_phase_intervals(phase)`` too.

        None for arguments of other types.
        """
        if by is not None and not isinstance(by, StatsBy):
            _LOGGER.info("%r is none of StatsBy", by)
            return None
        words = _words(resource, _ALL)
        if words is None:
            return None
        by_phase = by is StatsBy.TRAINING_PHASE
        intervals = self.get_training_phase_intervals(phase) if by_phase else None
        if intervals is None:
            intervals = extra("pandas", "pandas").DataFrame(
                {"start_time_us": [0], "end_time_us": [-1], "phase": [""]}
            )
        answer = self._ask(
            "frame_utilization", {"phases": intervals}, resources=words, by_phase=by_phase
        )
        return answer if by_phase else answer.drop(columns="Training_phase")

    def get_device_usage_stats(
        self,
        device: Resource | Sequence[Resource] | None = None,
        utilization_ranges: list[tuple[float, float]] | None = None,
    ) -> pd.DataFrame:
        """How many samples lie in each range of utilisation, by type and node; a column a range.

        By default CPU and GPU, and the ranges 90 to 100, 10 to 90 and 0 to 10 percent. An empty
        frame for arguments of other types.
        """
        pandas = extra("pandas", "pandas")
        words = _words(device, [Resource.CPU, Resource.GPU])
        ranges = _RANGES if utilization_ranges is None else utilization_ranges
        if words is None or not _are_ranges(ranges):
            return pandas.DataFrame()
        bounds = [[float(low), float(high)] for low, high in ranges]
        answer = self._ask("frame_usage", resources=words, ranges=bounds)
        counts = answer.pivot(index=["type", "nodeID"], columns="place", values="samples")
        counts = counts.reindex(columns=range(len(ranges))).fillna(0).astype("int64")
        order = sorted(range(len(ranges)), key=lambda place: ranges[place])
        usage = counts[order].reset_index()
        names = ["type", "nodeID", *(tuple(ranges[place]) for place in order)]
        usage.columns = pandas.Index(names, tupleize_cols=False, name="ranges")
        return usage

    def get_training_phase_intervals(
        self, phase: str | list[str] | None = None
    ) -> pd.DataFrame | None:
        """The phases of the training in turn, with what lies before, between and after them:
        start and end in microseconds, and the phase.

        By default all phases; for one alone each step is an interval of its own. None where no
        phase is there.
        """
        processes = set(self.framework_metrics_df["process"])
        if phase is None:
            phase = sorted(name for name in processes if _MODE in name)
        phases = [phase] if isinstance(phase, str) else phase
        if not isinstance(phases, list):
            _LOGGER.info("%r is neither the name of a phase nor a list of names", phases)
            return None
        phases = [name for name in phases if name in processes]
        if not phases:
            _LOGGER.info("none of the phases is in the framework metrics")
            return None
        return self._ask("frame_phases", phases=phases)

    def _ask(
        self, query: str, others: dict[str, pd.DataFrame] | None = None, **params: Any
    ) -> pd.DataFrame:
        """The answer of ``sql/compat/<query>.sql`` on the two frames."""
        frames = {
            "system": self.sys_metrics_df.assign(row_no=range(len(self.sys_metrics_df))),
            "framework": self.framework_metrics_df.assign(
                row_no=range(len(self.framework_metrics_df))
            ),
        }
        return ask_frames(query, {**frames, **(others or {})}, params)


def ask_frames(
    query: str, frames: dict[str, pd.DataFrame], params: dict[str, Any] | None = None
) -> pd.DataFrame:
    """The answer of ``sql/compat/<query>.sql`` on pandas frames by the names it gives them."""
    import duckdb

    with duckdb.connect(
        config={"memory_limit": settings.query_memory(), "threads": settings.threads()}
    ) as connection:
        for name, frame in frames.items():
            connection.register(name, frame)
        return connection.execute(sql_text(f"compat/{query}"), params or {}).df()


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _words(given: Any, default: list[Resource]) -> list[str] | None:
    """The types of metrics that resources stand for; None where something else was given."""
    if given is None:
        given = default
    resources = [given] if isinstance(given, Resource) else given
    if not isinstance(resources, list) or not all(isinstance(r, Resource) for r in resources):
        _LOGGER.info("%r is neither a Resource nor a list of them", given)
        return None
    return [resource.value for resource in resources]


def _are_ranges(given: Any) -> bool:
    is_so = isinstance(given, list) and given and all(len(bounds) == 2 for bounds in given)
    if not is_so:
        _LOGGER.info("%r is no list of pairs, as in [(0, 50), (50, 100)]", given)
    return bool(is_so)
