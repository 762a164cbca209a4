"""The timeline of a process in smdebug's layout, as it grows.

Its files are ``<end µs>_<pid>-<node>[_rank<N>]_pythontimeline.json``. An event is one line, so
that what a killed process leaves can be read to its last whole event.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pipeline.arguments import is_number
from pipeline.errors import UsageError
from pipeline.record.clock import Ticks
from pipeline.record.faults import Faults
from pipeline.record.files import OpenFile, Presence, after_fork, hour_of, node_name

__all__ = ["THREAD", "Args", "Slice", "Timeline", "Track"]

_T = TypeVar("_T")
_FLUSH_NS = 250_000_000
_SUFFIX = "pythontimeline.json"

Args = tuple[tuple[str, Any], ...]
Track = tuple[int, str]
"""The number of a thread, and its name."""
Slice = tuple[str, str, int, int, Args, Track]
"""Phase, name, start and end in nanoseconds, what else is known, and the thread."""


class _Thread(threading.local):
    """The track of a thread, asked once."""

    def __init__(self) -> None:
        self.track = (threading.get_native_id(), threading.current_thread().name)


THREAD = _Thread()
"""The thread that asks, by ``track``."""


after_fork(THREAD.__init__)  # type: ignore[misc]


class Timeline:
    """Writes slices below ``out``, in ``framework/pevents/<hour>/``; safe to use from threads.

    A file is closed when it has ``max_bytes``, is ``max_seconds`` old, or its hour is over, even
    where nothing happens. Times are nanoseconds of ``time.perf_counter_ns``, which never steps;
    where it stands among the clocks of other machines is asked once for each file. ``rank``
    becomes part of the names of the files. Raises ``UsageError`` for a ``node`` that files cannot
    be named by and for limits that are no positive numbers, ``StorageError`` where the folder
    cannot be written.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        node: str | None = None,
        rank: int | None = None,
        max_bytes: int = 10 << 20,
        max_seconds: float = 60.0,
    ) -> None:
        for limit, most in (("max_bytes", max_bytes), ("max_seconds", max_seconds)):
            if not is_number(most) or not 0 < most < math.inf:
                raise UsageError(f"{limit} of {most!r}: give a number above 0")
        self.out = Path(out)
        whose = f"{os.getpid()}-{node_name(node)}"
        self._whose = whose if rank is None else f"{whose}_rank{rank}"
        self._max_bytes, self._max_ns = max_bytes, int(max_seconds * 10**9)
        self._lock = threading.Lock()
        self._file: OpenFile | None = None
        self._closed = False
        self._pid = os.getpid()
        self._faults = Faults()
        # A slice takes a training as little time as may be: it is made a line later, with others.
        self._waiting: deque[Slice | Callable[[], list[Slice]]] = deque()
        self._last_ns = self._due_ns = 0
        self._ticks = Ticks(_FLUSH_NS / 10**9, lambda _: self._tick())
        self._presence = Presence(self.out, "framework")
        forked = weakref.WeakMethod(self._forked)
        after_fork(lambda: (forget := forked()) and forget())
        self._ticks.start()

    def slice(
        self,
        phase: str,
        name: str,
        start_ns: int,
        end_ns: int,
        args: Args = (),
        track: Track | None = None,
    ) -> None:
        """A slice on the track of a phase, in the thread that calls or that of ``track``; ``args``
        are names, each with its value.
        """
        if self._closed:
            return
        self._waiting.append((phase, name, start_ns, end_ns, args, track or THREAD.track))
        if end_ns > self._due_ns:
            self._hand_over(end_ns)

    def later(self, slices: Callable[[], list[Slice]]) -> None:
        """Slices that are worked out when they are written, soon and by whoever writes then."""
        if not self._closed:
            self._waiting.append(slices)

    def close(self) -> None:
        """Close the file; the last writer of the job marks its end."""
        if self._closed:
            return
        self._ticks.stop()
        with self._lock:
            self._closed = True
            with self._faults.harmless("close"):
                self._write_waiting()
                self._end_file()
            with self._faults.harmless("close"):
                self._presence.leave()

    def _forked(self) -> None:
        """A forked process has the files of its parent, and no business with them."""
        self._closed = True

    def _tick(self) -> None:
        """Write what waits, and close a file that is old: a training that hangs has all of it in
        files.
        """
        now = time.perf_counter_ns()
        if now > self._due_ns and (self._waiting or self._file is not None):
            self._hand_over(now)

    def _hand_over(self, now: int) -> None:
        with self._lock:
            if self._closed:
                return
            try:
                self._write_waiting()
                if self._file is not None and self._is_over(now):
                    self._end_file()
            except Exception as error:
                self._faults.tell("write", error)
                self._abandon()
            self._due_ns = now + _FLUSH_NS

    def _write_waiting(self) -> None:
        lines: list[str] = []
        for phase, name, start, end, args, track in self._slices():
            if self._file is None:
                self._last_ns = end
                lines.append(self._open(start))
            elif end > self._last_ns:
                self._last_ns = end
            whose = (phase, name, args, track)
            try:
                head = self._heads.get(whose) or self._head(lines, *whose)
            except (TypeError, ValueError) as error:
                # What cannot be told of it costs nothing but itself.
                self._faults.tell(phase, error)
                continue
            # Exact: it would take months of nanoseconds to need more digits than a double has.
            ts, dur = (start - self._zero_ns) / 1000, (end - start) / 1000
            lines.append(f'{head}"ts": {ts:.3f}, "dur": {dur:.3f}}}')
        if lines:
            assert self._file is not None
            text = ",\n".join(lines)
            self._file.write(f",\n{text}" if self._size else f"[\n{text}")
            self._size += len(text)

    def _slices(self) -> Iterator[Slice]:
        """All that wait."""
        while self._waiting:
            item = self._waiting.popleft()
            if not callable(item):
                yield item
            else:
                slices: list[Slice] = []
                with self._faults.harmless("slices"):
                    slices = item()
                yield from slices

    def _head(self, lines: list[str], phase: str, name: str, args: Args, track: Track) -> str:
        """How the line of a slice begins; what its track is called goes before it."""
        pid = self._phases.get(phase)
        if pid is None:
            pid = self._phases[phase] = len(self._phases) + 1
            lines.append(_meta("process_name", pid, args={"name": phase}))
            lines.append(_meta("process_sort_index", pid, args={"sort_index": pid}))
        tid, thread = track
        if (pid, tid) not in self._threads:
            self._threads.add((pid, tid))
            lines.append(_meta("thread_name", pid, tid=tid, args={"name": thread}))
        more = {"ph": "X", "pid": pid, "tid": tid, "args": {"pid": self._pid, **dict(args)}}
        head = self._heads[phase, name, args, track] = (
            json.dumps({"name": name, **more})[:-1] + ", "
        )
        return head

    def _open(self, start_ns: int) -> str:
        """A new file for events from then on; its first line."""
        base_ns = time.time_ns() - (time.perf_counter_ns() - start_ns)
        # Cut to whole microseconds, as the layout wants it.
        self._zero_ns, self._base_us = start_ns - base_ns % 1000, base_ns // 1000
        self._size = 0
        self._phases: dict[str, int] = {}
        self._heads: dict[tuple[str, str, Args, Track], str] = {}
        self._threads: set[tuple[int, int]] = set()
        self._file = self._named(start_ns, OpenFile)
        self._hour = self._file.path.parent
        base = {"start_time_since_epoch_in_micros": self._base_us}
        return _meta("process_name", 0, args=base)

    def _abandon(self) -> None:
        """Go on in another file: this one may end in the middle of an event."""
        self._waiting.clear()
        if self._file is not None:
            file, self._file = self._file, None
            file.abandon()

    def _path(self, end_ns: int) -> Path:
        """Where a file lies that ends then."""
        epoch_us = self._base_us + (end_ns - self._zero_ns) // 1000
        folder = self.out / "framework" / "pevents" / hour_of(epoch_us // 10**6)
        return folder / f"{epoch_us}_{self._whose}_{_SUFFIX}"

    def _named(self, end_ns: int, take: Callable[[Path], _T]) -> _T:
        """Take the name of a file that ends then, or where another file has that, of the first
        microsecond that none has: what one file ends with may touch what the next begins with.
        """
        while True:
            try:
                return take(self._path(end_ns))
            except FileExistsError:
                end_ns += 1000

    def _is_over(self, now: int) -> bool:
        """Whether the file is to be closed."""
        is_old = now - self._zero_ns > self._max_ns
        return is_old or self._size > self._max_bytes or self._path(now).parent != self._hour

    def _end_file(self) -> None:
        if self._file is None:
            return
        self._file.write("\n]\n")
        file, self._file = self._file, None
        self._named(self._last_ns, file.close)


def _meta(kind: str, pid: int, **more: Any) -> str:
    return json.dumps({"name": kind, "ph": "M", "pid": pid, **more})
