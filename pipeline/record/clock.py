"""When to sample: ticks that neither drift nor come twice, whatever the clock of the wall does."""

from __future__ import annotations

import threading
import time

__all__ = ["Clock", "next_tick"]


class Clock:
    """The clocks of this machine, and waiting by them. A simulation puts its own here."""

    def time_ns(self) -> int:
        """Nanoseconds since the epoch, as the wall clock has it; may step."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds of a clock that never steps."""
        return time.monotonic()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait so long, or until ``stop`` is set; whether it is."""
        return stop.wait(seconds)


def next_tick(start: float, interval: float, now: float) -> float:
    """The first multiple of the interval since the start that is still to come: a tick that is
    late is followed by the next, not by those that were missed.
    """
    return start + (max(now - start, 0.0) // interval + 1) * interval
