"""The enumerations and records of smdebug's profiler."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pipeline.errors import UsageError

__all__ = [
    "ProcessInfo",
    "ProfilerSystemEvent",
    "TimeUnits",
    "TraceEvent",
    "nanoseconds_of",
    "whole",
]


class TimeUnits(Enum):
    """Units of the times that readers take."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


# A century less than the numbers reach, which end in 2262.
_LIMIT_NS = 6_000_000_000 * 10**9
_UNITS = {
    TimeUnits.SECONDS: "s",
    TimeUnits.MILLISECONDS: "ms",
    TimeUnits.MICROSECONDS: "us",
    TimeUnits.NANOSECONDS: "ns",
}


def nanoseconds_of(time: float, unit: TimeUnits) -> int:
    """Nanoseconds of a time that a caller of the old interface gives; the last or first that
    there are for one beyond them, such as ``sys.maxsize``.

    Raises ``UsageError`` for a unit that is none of ``TimeUnits``, and for no number.
    """
    from pipeline.query.window import nanoseconds

    if unit not in _UNITS:
        raise UsageError(f"no unit of time {unit!r}: give one of TimeUnits")
    limit = _LIMIT_NS // 10 ** (9 - 3 * (unit.value - 1))
    return nanoseconds(min(max(time, -limit), limit), _UNITS[unit])


def whole(ns: int) -> int | float:
    """Microseconds of nanoseconds: an int where they are whole, as in most files."""
    return ns / 1000 if ns % 1000 else ns // 1000


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a trace: its number there, which is that of a phase, and its name."""

    id: int
    name: str


class TraceEvent:
    """A slice of a framework timeline; times are microseconds since the epoch.

    ``phase_pid`` and ``phase_tid`` are the numbers of its process and thread in the trace,
    ``event_phase`` is the name of that process; ``pid`` and ``tid`` are those of the system.
    """

    def __init__(
        self,
        ts: float,
        name: str,
        dur: float,
        phase_pid: int,
        phase_tid: int,
        event_args: dict[str, Any] | None,
        node_id: str,
        phase: str,
        file_type: str,
        event_phase: str = "",
        pid: int = 0,
        tid: int = 0,
        process_info: ProcessInfo | None = None,
    ) -> None:
        self.start_time = ts
        self.event_name = name
        self.duration = dur
        self.end_time = ts + dur
        self.phase_pid = phase_pid
        self.phase_tid = phase_tid
        self.event_args = event_args
        self.node_id = node_id
        self.phase = phase
        self.file_type = file_type
        self.event_phase = event_phase
        self.pid = pid
        self.tid = tid
        self.process_info = process_info or ProcessInfo(phase_pid, event_phase)

    def __repr__(self) -> str:
        return f"TraceEvent({self.to_json()})"

    def to_json(self) -> str:
        """The event as in a Chrome trace."""
        record: dict[str, Any] = {
            "name": self.event_name,
            "pid": self.pid,
            "tid": self.tid,
            "ph": self.phase,
            "ts": self.start_time,
        }
        if self.phase == "X":
            record["dur"] = self.duration
        if self.event_args:
            record["args"] = self.event_args
        return json.dumps(record)


class ProfilerSystemEvent:
    """A sample of a system metric; ``timestamp`` is seconds since the epoch."""

    def __init__(
        self,
        event_type: str,
        name: str | None,
        dimension: str,
        value: float | None,
        node_id: str,
        timestamp: float,
    ) -> None:
        self.type = event_type
        self.name = name
        self.dimension = dimension
        self.value = value
        self.node_id = node_id
        self.timestamp = timestamp

    def __repr__(self) -> str:
        return f"ProfilerSystemEvent({vars(self)})"
