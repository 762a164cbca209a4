"""A callback of Composer that records the machine into its trace, in the right units.

Name and arguments are those of Composer's own; so are the markers, but for what that one gets
wrong: bytes are bytes (its ``*_gb`` are bytes / 2^9 and its ``kb_*`` bytes / 2^3), and the series
of a disk is named by what it holds (there it is ``field_name``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psutil

from pipeline.extras import extra
from pipeline.record import samplers
from pipeline.record.clock import Ticks
from pipeline.record.faults import Faults

__all__ = ["SystemProfiler"]

_Callback: Any = extra("composer.core.callback", "composer").Callback
_DISK = (
    "read_count", "write_count", "read_bytes", "write_bytes", "read_time", "write_time",
    "busy_time",
)  # fmt: skip
Marker = tuple[str, dict[str, float]]
"""The name of a marker, and the values of its counter."""


class SystemProfiler(_Callback):  # type: ignore[misc]
    """Records CPU, memory, disks and network every so many seconds, as counters of Composer.

    Raises ``RuntimeError`` in a trainer without a profiler, as Composer's own does.
    """

    def __init__(
        self,
        profile_cpu: bool = True,
        profile_memory: bool = False,
        profile_disk: bool = False,
        profile_net: bool = False,
        stats_thread_interval_seconds: float = 0.5,
    ) -> None:
        self.profile_cpu = profile_cpu
        self.profile_memory = profile_memory
        self.profile_disk = profile_disk
        self.profile_net = profile_net
        self.stats_thread_interval_seconds = stats_thread_interval_seconds
        self._faults = Faults()
        self._ticks: Ticks | None = None

    def init(self, state: Any, logger: Any) -> None:
        """Begin to record. Composer calls it when the trainer is made."""
        if state.profiler is None:
            raise RuntimeError(
                f"{type(self).__name__} needs Composer's profiler: give the trainer a Profiler"
            )
        # A trainer that is made from another's callbacks calls it again.
        self.close(state, logger)
        cpu = samplers.cpu()

        def record(now: float) -> None:
            self._emit(state.profiler, cpu, now)

        self._ticks = Ticks(self.stats_thread_interval_seconds, record)
        list(cpu(self._ticks.clock.monotonic()))
        self._ticks.start()

    def close(self, state: Any, logger: Any) -> None:
        """End the recording. Composer calls it when the trainer is closed."""
        if self._ticks is not None:
            self._ticks.stop()

    def _emit(self, profiler: Any, cpu: samplers.Sampler, now: float) -> None:
        groups: list[tuple[str, str, bool, Callable[[], Iterator[Marker]]]] = [
            ("cpu", "cpu", self.profile_cpu, lambda: _cpu(cpu, now)),
            ("cuda", "memory", self.profile_memory, _cuda),
            ("memory", "memory", self.profile_memory, _memory),
            ("disk", "disk", self.profile_disk, _disk),
            ("network", "net", self.profile_net, _network),
        ]
        for what, category, is_wanted, markers in groups:
            with self._faults.harmless(what):
                for name, values in markers() if is_wanted else ():
                    profiler.marker(name, categories=[category]).counter(values)


def _cpu(cpu: samplers.Sampler, now: float) -> Iterator[Marker]:
    for sample in cpu(now):
        if (sample.name, sample.dimension) == ("cpu", "CPUUtilization"):
            yield "cpu", {"cpu_percent": sample.value}


def _cuda() -> Iterator[Marker]:
    stats = extra("torch", "torch").cuda.memory_stats()
    for name, value in stats.items():
        parts = name.split(".")
        # As allocated_bytes.all.current, of which Composer tells current and peak.
        if parts[0].endswith("_bytes") and parts[1:] in (["all", "current"], ["all", "peak"]):
            kind = f"{parts[2]}_{parts[0]}"
            yield f"memory/cuda/{kind}", {kind: value}
    if "num_alloc_retries" in stats:
        yield "memory/cuda/alloc_retries", {"alloc_retries": stats["num_alloc_retries"]}


def _memory() -> Iterator[Marker]:
    swap, virtual = psutil.swap_memory(), psutil.virtual_memory()
    yield "memory/swap", {"used_bytes": swap.used, "free_bytes": swap.free}
    yield (
        "memory/virtual",
        {"used_bytes": virtual.used, "available_bytes": virtual.available},
    )


def _disk() -> Iterator[Marker]:
    counters = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    for disk, io in counters.items():
        # Not every system has all of them.
        for field in (field for field in _DISK if hasattr(io, field)):
            yield f"disk/{disk}/{field}", {field: getattr(io, field)}


def _network() -> Iterator[Marker]:
    counters = psutil.net_io_counters(pernic=True, nowrap=False) or {}
    for interface, io in counters.items():
        for field in ("bytes_sent", "bytes_recv"):
            yield f"network/{interface}/{field}", {field: getattr(io, field)}
