"""When to sample: ticks that neither drift nor come twice, whatever the clock of the wall does."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable

from pipeline.arguments import is_number
from pipeline.errors import UsageError

__all__ = ["Clock", "Ticks", "next_tick"]

_LOGGER = logging.getLogger(__name__)
_PATIENCE = 5.0
"""Seconds for what is under way when it is to stop: a driver or a mount may hang for ever."""


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


class Ticks:
    """Calls ``work`` at every tick in a thread of its own, with the time of a clock that never
    steps; ``first`` at the start, and once more and then ``last`` when it is stopped.

    Raises ``UsageError`` for an interval that is none.
    """

    def __init__(
        self,
        interval: float,
        work: Callable[[float], object],
        last: Callable[[], object] = lambda: None,
        clock: Clock | None = None,
        first: Callable[[float], object] = lambda _: None,
    ) -> None:
        most = threading.TIMEOUT_MAX
        if not is_number(interval) or not 0 < interval <= most:
            raise UsageError(
                f"an interval of {interval!r} seconds: give a number above 0, "
                f"and at most {most:.0f}"
            )
        self.interval = interval
        self.clock = clock or Clock()
        self._first, self._work, self._last = first, work, last
        self._begun, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def start(self) -> None:
        """Begin, and wait for the first call, though not for ever. Raises ``UsageError`` if it has
        begun before.
        """
        if self._thread is not None:
            raise UsageError("this has been started before: make another one")
        self._thread = threading.Thread(target=self._run, name="tracelake-recorder", daemon=True)
        self._pid = os.getpid()
        self._thread.start()
        self._begun.wait(_PATIENCE)
        atexit.register(self.stop)

    def stop(self) -> None:
        """End, after a last call; what hangs is told and left behind. Does nothing where it does
        not run, nor in a process that was forked from the one it runs in.
        """
        if self._thread is None or self._stop.is_set() or os.getpid() != self._pid:
            return
        self._stop.set()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            _LOGGER.warning(
                "recording: it has not stopped within %g seconds: something that was asked does "
                "not answer, and the last file stays open", _PATIENCE,
            )  # fmt: skip
        atexit.unregister(self.stop)

    def _run(self) -> None:
        start = self.clock.monotonic()
        self._first(start)
        self._begun.set()
        stopped = False
        while not stopped:
            tick = next_tick(start, self.interval, self.clock.monotonic())
            stopped = self.clock.wait(self._stop, tick - self.clock.monotonic())
            self._work(self.clock.monotonic())
        self._last()
