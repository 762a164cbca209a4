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


@dataclass
class TraceEvent:
    """A slice of a framework timeline; times are microseconds since the epoch."""

    start_time: float
    event_name: str
    duration: float
    phase_pid: int
    phase_tid: int
    event_args: dict[str, Any] | None
    node_id: str
    phase: str
    file_type: str
    event_phase: str = ""
    pid: int = 0
    tid: int = 0

    @property
    def process_info(self) -> ProcessInfo:
        """The process that the event is shown in."""
        return ProcessInfo(self.phase_pid, self.event_phase)

    @property
    def end_time(self) -> float:
        """End in microseconds since the epoch."""
        return self.start_time + self.duration

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


@dataclass
class ProfilerSystemEvent:
    """A sample of a system metric; ``timestamp`` is seconds since the epoch."""

    type: str
    name: str | None
    dimension: str
    value: float | None
    node_id: str
    timestamp: float
