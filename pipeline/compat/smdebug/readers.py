"""The readers: lists of events in a range of time or of steps."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
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


class _Reader(ABC):
    """What both kinds of reader share: the list of files."""

    _is_system: bool

    def __init__(self, path: str) -> None:
        self._job = job_of(str(path))

    def refresh_event_file_list(self) -> None:
        """See the files that are new or have changed; a query that comes near the newest does so
        by itself.
        """
        self._job.refresh()

    def get_timestamp_of_first_available_file(self) -> int:
        """Time of the first file, in microseconds since the epoch; 0 where none is."""
        return self.get_current_time_range_for_event_query()[0]

    def get_timestamp_of_latest_available_file(self) -> int:
        """Time of the last file, in microseconds since the epoch; 0 where none is."""
        return self.get_current_time_range_for_event_query()[1]

    def get_current_time_range_for_event_query(self) -> tuple[int, int]:
        """Times of the first and the last file, in microseconds since the epoch: those in their
        names, of a TensorFlow trace that of its last event; (0, 0) where there is no file.
        """
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
        """Events or samples that were under way between two times, both included, by start.

        ``file_suffix_filter`` lists endings of the names of files. ``event_type`` chooses samples
        of one type, such as cpu; events have none: ``UsageError``.
        """
        start, end = nanoseconds_of(start_time, unit), nanoseconds_of(end_time, unit)
        return self._found(start, end, event_type, file_suffix_filter)

    @abstractmethod
    def _found(
        self, start: int, end: int, event_type: str | None, uris: Sequence[str] | None
    ) -> list[Any]:
        """Events or samples between nanoseconds."""

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
        first, until = self._job.step_starts(start_step, end_step)
        return (0, 0) if first is None or until is None else (first, until - 1)


class _AlgorithmReader(_Reader):
    _is_system = False

    def _found(
        self, start: int, end: int, event_type: str | None, uris: Sequence[str] | None
    ) -> list[TraceEvent]:
        if event_type is not None:
            raise UsageError(f"framework events have no type such as {event_type!r}: leave it out")
        rows = self._job.framework_events(EVENT, start, end, uris=uris)
        return [trace_event(row) for row in rows_of(rows)]


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table)).iter_rows(named=True)


def trace_event(row: dict[str, Any]) -> TraceEvent:
    """The record of a row of ``Job.framework_events``."""
    return TraceEvent(
        ts=whole(row["ts_ns"]),
        name=row["name"],
        dur=whole(row["dur_ns"]),
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

    def _found(
        self, start: int, end: int, event_type: str | None, uris: Sequence[str] | None
    ) -> list[ProfilerSystemEvent]:
        rows = self._job.system_events(SAMPLE, start, end, type=event_type, uris=uris)
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
        super().__init__(_on_s3(s3_trial_path))


class LocalSystemMetricsReader(_SystemReader):
    """System metrics of a folder. ``use_in_memory_cache`` is taken and not needed."""

    def __init__(self, trace_root_folder: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(trace_root_folder)
        self.trace_root_folder = trace_root_folder


class S3SystemMetricsReader(_SystemReader):
    """System metrics of a prefix on S3, with the credentials of the usual AWS environment."""

    def __init__(self, s3_trial_path: str, use_in_memory_cache: bool = False) -> None:
        super().__init__(_on_s3(s3_trial_path))


def _on_s3(path: str) -> str:
    if not str(path).startswith(("s3://", "s3a://")):
        raise UsageError(f"{path} is no URL on S3, as in s3://bucket/folder")
    return path
