"""The parsers of single files: each reads files and keeps their events."""

from __future__ import annotations

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from pipeline.compat.smdebug.job import Job, file_alone
from pipeline.compat.smdebug.readers import EVENT, SAMPLE, rows_of, system_event, trace_event
from pipeline.compat.smdebug.types import (
    ProcessInfo,
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

_MARKER = "aws_marker-"
_MARKED_PHASES = ("ForwardPass", "ComputeGradient", "ApplyGradient")
Event = TypeVar("Event", bound=TraceEvent | ProfilerSystemEvent)


class _Parser(ABC, Generic[Event]):
    _format: str | None = None

    def __init__(self) -> None:
        self._events: list[tuple[int, int, Event]] = []

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

    def _read(self, path: str) -> None:
        for row in rows_of(self._rows(file_alone(path, self._format))):
            event = self._event(row)
            self._events.append((*self._span(row, event), event))

    def _read_text(self, name: str, text: str) -> None:
        """Read what a file of this name would hold."""
        with tempfile.TemporaryDirectory(prefix="tracelake-smdebug-") as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            self._read(str(path))

    @abstractmethod
    def _rows(self, job: Job) -> pa.Table: ...

    @abstractmethod
    def _event(self, row: dict[str, Any]) -> Event: ...

    @abstractmethod
    def _span(self, row: dict[str, Any], event: Event) -> tuple[int, int]:
        """Start and end in nanoseconds."""


class _TraceParser(_Parser[TraceEvent]):
    type = ""

    def read_events_from_file(self, tracefile: str) -> None:
        """Add the events of a file, which may be compressed, open or cut off.

        Raises ``SourceError`` where there is none, or it is no trace.
        """
        self._read(tracefile)

    def read_events_from_json_data(
        self, trace_json_data: Sequence[dict[str, Any]], node_id: str
    ) -> None:
        """Add events that are there as dicts of a Chrome trace."""
        name = f"0_{quote(node_id, safe='')}_pythontimeline.json"
        self._read_text(name, json.dumps(trace_json_data))

    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """All events by start."""
        return sorted(self.get_all_events(), key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """All events by end."""
        return sorted(self.get_all_events(), key=lambda event: event.end_time)

    def get_processes(self) -> dict[int, ProcessInfo]:
        """The processes that have events, by their number in the trace."""
        return {event.phase_pid: event.process_info for event in self.get_all_events()}

    def get_process_info(self, process_id: int) -> ProcessInfo:
        """A process by its number in the trace. Raises ``KeyError`` where it has no events."""
        return self.get_processes()[process_id]

    def get_events_for_process(
        self, pid: int, start_time: float, end_time: float
    ) -> list[TraceEvent]:
        """Events of a process that were under way between two times in microseconds."""
        events = self.get_events_within_time_range(start_time, end_time)
        return [event for event in events if event.pid == pid]

    def get_events_for_thread(
        self, tid: int, start_time: float, end_time: float
    ) -> list[TraceEvent]:
        """Events of a thread that were under way between two times in microseconds."""
        events = self.get_events_within_time_range(start_time, end_time)
        return [event for event in events if event.tid == tid]

    def _rows(self, job: Job) -> pa.Table:
        return job.framework_events(EVENT)

    def _event(self, row: dict[str, Any]) -> TraceEvent:
        event = trace_event(row)
        event.file_type = self.type
        return event

    def _span(self, row: dict[str, Any], event: TraceEvent) -> tuple[int, int]:
        return row["ts_ns"], row["end_ns"]


class SMProfilerEvents(_TraceParser):
    """Events of smdebug's own timelines, and of merged ones."""

    def __init__(self, type: str = "PythontimelineMetrics") -> None:
        super().__init__()
        self.type = type


class TensorboardProfilerEvents(_TraceParser):
    """Events of a trace of TensorFlow's profiler."""

    type = "TFProfilerMetrics"
    _format = "tensorflow"

    def get_complete_op_events(self, tracefile: str) -> list[tuple[TraceEvent, str]]:
        """The events of a file that carry a marker of a training phase, each with the phase."""
        self.read_events_from_file(tracefile)
        found = []
        for event in self.get_all_events():
            phase = event.event_name.partition("/")[0].removeprefix(_MARKER)
            if event.event_name.startswith(_MARKER) and phase in _MARKED_PHASES:
                found.append((event, phase))
        return found

    def get_training_info(self, tracefile: str) -> dict[str, list[list[Any]]]:
        """Name, start and duration in microseconds of the marked events, by training phase."""
        info: dict[str, list[list[Any]]] = {phase: [] for phase in _MARKED_PHASES}
        for event, phase in self.get_complete_op_events(tracefile):
            info[phase].append([event.event_name, event.start_time, event.duration])
        return info


class HorovodProfilerEvents(_TraceParser):
    """Events of a Horovod timeline."""

    type = "HorovodMetrics"
    _format = "horovod"


class ProfilerSystemEvents(_Parser[ProfilerSystemEvent]):
    """Samples of a file of system metrics."""

    _format = "system"

    def read_events_from_file(self, eventfile: str) -> None:
        """Add the samples of a file, which may be compressed, open or cut off.

        Raises ``SourceError`` where there is none, or it has none.
        """
        self._read(eventfile)

    def read_events_from_json_data(
        self, system_profiler_json_data: Sequence[dict[str, Any]]
    ) -> None:
        """Add samples that are there as dicts."""
        lines = (json.dumps(sample) + "\n" for sample in system_profiler_json_data)
        self._read_text("0.json", "".join(lines))

    def read_event_from_dict(self, event: dict[str, Any]) -> None:
        """Add one sample that is there as a dict."""
        self.read_events_from_json_data([event])

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Those between two times, both included; of one type, such as cpu, if given."""
        events = super().get_events_within_time_range(start_time, end_time, unit)
        return [event for event in events if event_type is None or event.type == event_type]

    def _rows(self, job: Job) -> pa.Table:
        return job.system_events(SAMPLE)

    def _event(self, row: dict[str, Any]) -> ProfilerSystemEvent:
        return system_event(row)

    def _span(self, row: dict[str, Any], event: ProfilerSystemEvent) -> tuple[int, int]:
        # Seconds as a double are coarser than what the file says; a caller has but these.
        moment = nanoseconds_of(event.timestamp, TimeUnits.SECONDS)
        return moment, moment
