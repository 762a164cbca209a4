"""``SystemRecorder``: samples the machine while something runs, into smdebug's system layout."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Literal

from pipeline.record import samplers
from pipeline.record.clock import Clock, Ticks
from pipeline.record.faults import Faults
from pipeline.record.files import OpenFile, Presence, hour_of, node_name
from pipeline.record.gpu import cuda_memory, nvidia
from pipeline.record.samplers import Sample, Sampler

__all__ = ["SystemRecorder"]

_FILE_SECONDS = 60


class SystemRecorder:
    """Samples CPU, memory, disks, network and GPUs every ``interval`` seconds in a thread.

    ``out`` is the folder of the job; the samples are in ``system/incremental/<hour>/``, a file a
    minute, JSON lines with their units, each there as soon as it is taken. ``gpu`` is True, False
    or auto (NVIDIA's where there are any). ``node`` names the machine, by default as it names
    itself. One recorder a machine is enough.

    ``start`` and ``stop`` it, or use it as a context manager. Nothing that goes wrong while it
    runs ends the training: it is logged once. ``samples`` counts what was written. Raises
    ``UsageError`` for arguments that make no sense.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        interval: float = 0.5,
        cpu: bool = True,
        memory: bool = True,
        disk: bool = True,
        network: bool = True,
        gpu: bool | Literal["auto"] = "auto",
        node: str | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        # Shares and rates are over the time since the call before, so that there is a first.
        self._ticks = Ticks(interval, self._record, self._end, clock, first=self._ask_all)
        self.out = Path(out)
        self.node = node_name(node)
        self.samples = 0
        makers = {
            "cpu": samplers.cpu if cpu else None,
            "memory": samplers.memory if memory else None,
            "disk": samplers.disk if disk else None,
            "network": samplers.network if network else None,
            "gpu": lambda: nvidia(gpu),
            "cuda": (lambda: cuda_memory) if gpu is not False else None,
        }
        made = {name: make() for name, make in makers.items() if make is not None}
        self._samplers: dict[str, Sampler] = {n: s for n, s in made.items() if s is not None}
        self._faults = Faults()
        self._file: OpenFile | None = None
        self._presence: Presence | None = None
        self._minute = 0
        self._opened = 0.0

    def start(self) -> SystemRecorder:
        """Begin to sample. Raises ``UsageError`` if it has begun before, ``StorageError`` where
        the folder cannot be written.
        """
        if self._presence is None:
            self._presence = Presence(self.out, "system")
        self._ticks.start()
        return self

    def stop(self) -> None:
        """Take a last sample, close the file, and mark the end of the job if nobody else writes.

        Does nothing where it does not run, nor in a process forked from the one it runs in.
        """
        self._ticks.stop()

    def __enter__(self) -> SystemRecorder:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _record(self, now: float) -> None:
        taken_ns = self._ticks.clock.time_ns()
        found = self._ask_all(now)
        with self._faults.harmless("write"):
            self._write(taken_ns, now, found)
            self.samples += len(found)

    def _end(self) -> None:
        with self._faults.harmless("close"):
            self._close()
        if self._presence is not None:
            with self._faults.harmless("close"):
                self._presence.leave()

    def _ask_all(self, now: float) -> list[Sample]:
        found: list[Sample] = []
        for name, sampler in self._samplers.items():
            with self._faults.harmless(name):
                found += sampler(now)
        return found

    def _write(self, taken_ns: int, now: float, found: list[Sample]) -> None:
        minute = taken_ns // 10**9 // _FILE_SECONDS * _FILE_SECONDS
        # Where the clock stepped back its minutes come again, but no file is opened again.
        if self._file is None or minute > self._minute or now - self._opened >= _FILE_SECONDS:
            self._close()
            self._file = self._open(minute)
            self._minute, self._opened = minute, now
        file = self._file
        moment = f"{taken_ns // 10**9}.{taken_ns % 10**9:09d}"
        try:
            file.write("".join(self._line(sample, moment) for sample in found))
        except FileNotFoundError:
            # The next samples are in another file.
            self._file = None
            file.abandon()
            raise

    def _line(self, sample: Sample, moment: str) -> str:
        value = sample.value if math.isfinite(sample.value) else None
        known = {
            "Type": sample.type, "Name": sample.name, "Dimension": sample.dimension,
            "Value": value, "Unit": sample.unit, "NodeId": self.node,
        }  # fmt: skip
        # The time as text: a double has no nanoseconds.
        return f'{json.dumps(known)[:-1]}, "Timestamp": {moment}}}\n'

    def _open(self, minute: int) -> OpenFile:
        """The file of a minute, or of a second of it where another recorder has that."""
        folder = self.out / "system" / "incremental" / hour_of(minute)
        for second in range(minute, minute + _FILE_SECONDS):
            try:
                return OpenFile(folder / f"{second}.{self.node}.json")
            except FileExistsError:
                continue
        raise FileExistsError(f"{folder} has a file for every second of {minute}")

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
