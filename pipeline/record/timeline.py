"""The timeline of a process in smdebug's layout, as it grows.

Its files are ``<end µs>_<pid>-<node>[_rank<N>]_pythontimeline.json``. An event is one line, so
that what a killed process leaves can be read to its last whole event.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from pipeline.record.clock import Ticks
from pipeline.record.faults import Faults
from pipeline.record.files import OpenFile, Presence, hour_of, node_name

__all__ = ["Timeline"]

_FLUSH_NS = 250_000_000
_SUFFIX = "pythontimeline.json"


class Timeline:
    """Writes slices below ``out``, in ``framework/pevents/<hour>/``; safe to use from threads.

    A file is closed when it has ``max_bytes``, is ``max_seconds`` old, or its hour is over. Times
    are nanoseconds of ``time.perf_counter_ns``, which never steps; where it stands among the
    clocks of other machines is asked once for each file. ``rank`` becomes part of the names of
    the files. Raises ``UsageError`` for a ``node`` that files cannot be named by, ``StorageError``
    where the folder cannot be written.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        node: str | None = None,
        rank: int | None = None,
        max_bytes: int = 10 << 20,
        max_seconds: float = 60.0,
    ) -> None:
        self.out = Path(out)
        whose = f"{os.getpid()}-{node_name(node)}"
        self._whose = whose if rank is None else f"{whose}_rank{rank}"
        self._max_bytes, self._max_ns = max_bytes, int(max_seconds * 10**9)
        self._lock = threading.Lock()
        self._file: OpenFile | None = None
        self._closed = False
        self._pid = os.getpid()
        self._faults = Faults()
        self._lines: list[str] = []
        self._ticks = Ticks(_FLUSH_NS / 10**9, lambda _: self._hand_over())
        self._presence = Presence(self.out, "framework")
        self._ticks.start()

    def slice(
        self, phase: str, name: str, start_ns: int, end_ns: int, args: dict[str, Any] | None = None
    ) -> None:
        """A slice on the track of a phase, in the thread that calls."""
        # A forked process has the files of its parent, and no business with them.
        if self._closed or os.getpid() != self._pid:
            return
        with self._lock:
            self._put(phase, name, start_ns, end_ns, args)

    def close(self) -> None:
        """Close the file; the last writer of the job marks its end."""
        if self._closed or os.getpid() != self._pid:
            return
        self._ticks.stop()
        with self._lock:
            self._closed = True
            with self._faults.harmless("close"):
                self._end_file()
            with self._faults.harmless("close"):
                self._presence.leave()

    def _hand_over(self) -> None:
        """Write what waits: a training that hangs has all of it in the file."""
        with self._lock:
            if self._lines and not self._closed:
                self._end_lines(self._last_ns)

    def _put(self, phase: str, name: str, start_ns: int, end_ns: int, args: Any) -> None:
        try:
            if self._file is None:
                self._open(start_ns)
            self._add(phase, name, start_ns, end_ns, args)
        except OSError as error:
            self._faults.tell("write", error)
            self._abandon()
            return
        if end_ns - self._flushed_ns > _FLUSH_NS:
            self._end_lines(end_ns)

    def _end_lines(self, now_ns: int) -> None:
        try:
            self._flush(now_ns)
            self._rotate(now_ns)
        except OSError as error:
            self._faults.tell("write", error)
            self._abandon()

    def _open(self, now_ns: int) -> None:
        self._base_ns = time.time_ns() - (time.perf_counter_ns() - now_ns)
        self._zero_ns = now_ns
        self._last_ns, self._flushed_ns, self._size = now_ns, now_ns, 0
        self._phases: dict[str, int] = {}
        self._threads: set[tuple[int, int]] = set()
        path = self._path(now_ns)
        self._hour = path.parent
        self._file = OpenFile(path)
        base = {"start_time_since_epoch_in_micros": self._base_ns // 1000}
        # Cut to whole microseconds, as the layout wants it.
        self._zero_ns -= self._base_ns % 1000
        self._lines.append("[\n" + _meta("process_name", 0, args=base))

    def _abandon(self) -> None:
        """Go on in another file: this one may end in the middle of an event."""
        self._lines.clear()
        if self._file is not None:
            file, self._file = self._file, None
            file.abandon()

    def _path(self, now_ns: int) -> Path:
        """Where a file lies that ends now."""
        epoch_ns = self._base_ns + now_ns - self._zero_ns
        folder = self.out / "framework" / "pevents" / hour_of(epoch_ns // 10**9)
        return folder / f"{epoch_ns // 1000}_{self._whose}_{_SUFFIX}"

    def _add(self, phase: str, name: str, start_ns: int, end_ns: int, args: Any) -> None:
        tid = threading.get_native_id()
        pid = self._phases.get(phase)
        if pid is None:
            pid = self._phases[phase] = len(self._phases) + 1
            self._lines.append(_meta("process_name", pid, args={"name": phase}))
            self._lines.append(_meta("process_sort_index", pid, args={"sort_index": pid}))
        if (pid, tid) not in self._threads:
            self._threads.add((pid, tid))
            name_of = {"name": threading.current_thread().name}
            self._lines.append(_meta("thread_name", pid, tid=tid, args=name_of))
        told = json.dumps({"pid": self._pid, **(args or {})})
        start, duration = _microseconds(start_ns - self._zero_ns), _microseconds(end_ns - start_ns)
        self._lines.append(
            f'{{"name": {json.dumps(name)}, "ph": "X", "pid": {pid}, "tid": {tid}, '
            f'"ts": {start}, "dur": {duration}, "args": {told}}}'
        )
        self._last_ns = max(self._last_ns, end_ns)

    def _flush(self, now_ns: int) -> None:
        assert self._file is not None
        self._flushed_ns = now_ns
        if self._lines:
            text = ",\n".join(self._lines)
            text = f",\n{text}" if self._size else text
            self._lines.clear()
            self._size += len(text)
            self._file.write(text)

    def _rotate(self, now_ns: int) -> None:
        is_old = now_ns - self._zero_ns > self._max_ns
        if is_old or self._size > self._max_bytes or self._path(now_ns).parent != self._hour:
            self._end_file()

    def _end_file(self) -> None:
        if self._file is None:
            return
        self._flush(self._last_ns)
        self._file.write("\n]\n")
        path = self._path(self._last_ns)
        path.parent.mkdir(parents=True, exist_ok=True)
        file, self._file = self._file, None
        file.close(path)


def _meta(kind: str, pid: int, **more: Any) -> str:
    return json.dumps({"name": kind, "ph": "M", "pid": pid, **more})


def _microseconds(ns: int) -> str:
    """Exact, as decimal text."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"
