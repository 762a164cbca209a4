"""The readers: lists of events in a range of time or of steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.compat.smdebug.job import job_of
from pipeline.compat.smdebug.types import (
    ProfilerSystemEvent,
    TimeUnits,
    TraceEvent,
    nanoseconds_of,
    whole,
)
from pipeline.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EVENT",
    "SAMPLE",
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "S3AlgorithmMetricsReader",
    "S3SystemMetricsReader",
    "rows_of",
    "system_event",
    "trace_event",
]


EVENT = (
    "ts_ns", "end_ns", "dur_ns", "name", "tid", "pid", "phase_tid", "phase_pid", "process",
    "nodeID", "args", "file_type",
)  # fmt: skip
SAMPLE = ("ts_ns", "value", "system_metric", "dimension", "nodeID", "type")
"""The columns of ``Job`` that make a ``TraceEvent`` and a ``ProfilerSystemEvent``."""


class _Reader:
    """What both kinds of reader share: the list of files."""

    _is_system: bool

    def __init__(self, path: str) -> None:
        self._job = job_of(str(path))

    def refresh_event_file_list(self) -> None:
        """See the files that are new or have changed since."""
        self._job.refresh()

    def get_timestamp_of_first_available_file(self) -> int:
        """Time in the name of the first file, microseconds since the epoch; 0 where none is."""
        return self.get_current_time_range_for_event_query()[0]

    def get_timestamp_of_latest_available_file(self) -> int:
        """Time in the name of the last file, microseconds since the epoch; 0 where none is."""
        return self.get_current_time_range_for_event_query()[1]

    def get_current_time_range_for_event_query(self) -> tuple[int, int]:
        """Times in the names of the first and the last file, in microseconds; (0, 0) for none."""
        times = self._job.file_times(self._is_system)
        return (times[0], times[-1]) if times else (0, 0)

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Any]:
        """Events or samples between two times."""
        raise NotImplementedError

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Any]:
        """Events or samples between the starts of two steps; none where a step is not there."""
        start, end = self._get_time_interval_for_step(start_step, end_step)
        unit = TimeUnits.MICROSECONDS
        return self.get_events(start, end, unit, event_type, file_suffix_filter)

    def _get_time_interval_for_step(self, start_step: int, end_step: int) -> tuple[int, int]:
        """Microseconds of the start of a step, and of just before another; (0, 0) for none."""
        steps = self._job.run.steps()["step"]
        if start_step not in steps or end_step not in steps:
            return 0, 0
        try:
            ((start, end),) = self._job.run.step_interval(start_step, end_step).rows()
        except UsageError:
            return 0, 0
        return start // 1000, end // 1000


class _AlgorithmReader(_Reader):
    _is_system = False

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[TraceEvent]:
        """Finished events that were under way between two times, both included, by start."""
        start, end = nanoseconds_of(start_time, unit), nanoseconds_of(end_time, unit)
        rows = self._job.framework_events(EVENT, start, end, uris=file_suffix_filter)
        return [trace_event(row) for row in rows_of(rows)]


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table)).iter_rows(named=True)


def trace_event(row: dict[str, Any]) -> TraceEvent:
    """The record of a row of ``Job.framework_events``."""
    return TraceEvent(
        start_time=whole(row["ts_ns"]),
        event_name=row["name"],
        duration=whole(row["dur_ns"]),
        phase_pid=row["phase_pid"],
        phase_tid=row["phase_tid"],
        event_args=None if row["args"] is None else json.loads(row["args"]),
        node_id=row["nodeID"],
        phase="X",
        file_type=row["file_type"],
        event_phase=row["process"],
        pid=row["pid"],
        tid=row["tid"],
    )


class _SystemReader(_Reader):
    _is_system = True

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Samples between two times, both included; of one type, such as cpu, if given."""
        start, end = nanoseconds_of(start_time, unit), nanoseconds_of(end_time, unit)
        rows = self._job.system_events(SAMPLE, start, end, type=event_type)
        return [system_event(row) for row in rows_of(rows)]


def system_event(row: dict[str, Any]) -> ProfilerSystemEvent:
    """The record of a row of ``Job.system_events``."""
    return ProfilerSystemEvent(
        row["type"],
        row["system_metric"],
        row["dimension"],
        row["value"],
        row["nodeID"],
        row["ts_ns"] / 10**9,
    )


class LocalAlgorithmMetricsReader(_AlgorithmReader):
    """Framework events of a folder. ``use_in_memory_cache`` is taken and not needed."""

    def __init__(self, trace_root_folder: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(trace_root_folder)
        self.trace_root_folder = trace_root_folder


class S3AlgorithmMetricsReader(_AlgorithmReader):
    """Framework events of a prefix on S3, with the credentials of the usual AWS environment."""

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(s3_trial_path)


class LocalSystemMetricsReader(_SystemReader):
    """System metrics of a folder. ``use_in_memory_cache`` is taken and not needed."""

    def __init__(self, trace_root_folder: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(trace_root_folder)
        self.trace_root_folder = trace_root_folder


class S3SystemMetricsReader(_SystemReader):
    """System metrics of a prefix on S3, with the credentials of the usual AWS environment."""

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(s3_trial_path)
