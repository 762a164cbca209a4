"""The parsers of single files: each reads files and keeps their events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipeline.compat.smdebug.job import Job
from pipeline.compat.smdebug.readers import EVENT, SAMPLE, rows_of, system_event, trace_event
from pipeline.compat.smdebug.types import (
    ProfilerSystemEvent,
    TimeUnits,
    TraceEvent,
    nanoseconds_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "HorovodProfilerEvents",
    "ProfilerSystemEvents",
    "SMProfilerEvents",
    "TensorboardProfilerEvents",
]

Event = TypeVar("Event", bound=TraceEvent | ProfilerSystemEvent)


class _Parser(Generic[Event]):
    _format: str | None = None

    def __init__(self) -> None:
        self._events: list[tuple[int, int, Event]] = []

    def read_events_from_file(self, tracefile: str) -> None:
        """Add the events of a file, which may be compressed, open or cut off."""
        job = Job(tracefile, self._format)
        job.refresh()
        for row in rows_of(self._rows(job)):
            event = self._event(row)
            self._events.append((*self._span(row, event), event))

    def get_all_events(self) -> list[Event]:
        """All events that were read."""
        return [event for _, _, event in self._events]

    def get_events_within_time_range(
        self, start_time: float, end_time: float, unit: TimeUnits = TimeUnits.MICROSECONDS
    ) -> list[Event]:
        """Those that were under way between two times, both included."""
        first, last = nanoseconds_of(start_time, unit), nanoseconds_of(end_time, unit)
        return [event for start, end, event in self._events if end >= first and start <= last]

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[Event]:
        """Those that were under way between two moments, both included."""
        return self.get_events_within_time_range(
            start_time.timestamp(), end_time.timestamp(), TimeUnits.SECONDS
        )

    def clear_events(self) -> None:
        """Forget what was read."""
        self._events = []

    def _rows(self, job: Job) -> pa.Table:
        raise NotImplementedError

    def _event(self, row: dict[str, Any]) -> Event:
        raise NotImplementedError

    def _span(self, row: dict[str, Any], event: Event) -> tuple[int, int]:
        """Start and end in nanoseconds."""
        raise NotImplementedError


class _TraceParser(_Parser[TraceEvent]):
    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """All events by start."""
        return sorted(self.get_all_events(), key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """All events by end."""
        return sorted(self.get_all_events(), key=lambda event: event.end_time)

    def _rows(self, job: Job) -> pa.Table:
        return job.framework_events(EVENT)

    def _event(self, row: dict[str, Any]) -> TraceEvent:
        return trace_event(row)

    def _span(self, row: dict[str, Any], event: TraceEvent) -> tuple[int, int]:
        return row["ts_ns"], row["end_ns"]


class SMProfilerEvents(_TraceParser):
    """Events of smdebug's own timelines, and of merged ones. ``type`` is taken and not needed."""

    def __init__(self, type: str = "PythontimelineMetrics") -> None:
        super().__init__()


class TensorboardProfilerEvents(_TraceParser):
    """Events of a trace of TensorFlow's profiler."""

    _format = "tensorflow"


class HorovodProfilerEvents(_TraceParser):
    """Events of a Horovod timeline."""

    _format = "horovod"


class ProfilerSystemEvents(_Parser[ProfilerSystemEvent]):
    """Samples of a file of system metrics."""

    _format = "system"

    def _rows(self, job: Job) -> pa.Table:
        return job.system_events(SAMPLE)

    def _event(self, row: dict[str, Any]) -> ProfilerSystemEvent:
        return system_event(row)

    def _span(self, row: dict[str, Any], event: ProfilerSystemEvent) -> tuple[int, int]:
        # Seconds as a double are coarser than what the file says; a caller has but these.
        moment = nanoseconds_of(event.timestamp, TimeUnits.SECONDS)
        return moment, moment
