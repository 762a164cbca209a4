"""What the machine does, read with psutil: each sampler gives the samples of one resource.

Rates and shares are over the time since the call before; where a counter went back (a device was
reset or replaced) there is none for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Sample", "Sampler", "cpu", "disk", "memory", "network"]


@dataclass(frozen=True)
class Sample:
    """One value: ``type`` as smdebug has it (cpu, memory, i/o, network, gpu), ``name`` the
    device, ``dimension`` the metric.
    """

    type: str
    name: str
    dimension: str
    value: float
    unit: str


Sampler = Callable[[float], Iterator[Sample]]
"""Called with the time in seconds of a clock that never steps."""


class _Growth:
    """By how much counters grew since the call before, and in how many seconds."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, dict[str, float]]] = {}

    def of(self, device: str, now: float, counters: dict[str, float]) -> dict[str, float]:
        """Growth of each counter, and ``seconds``; empty for a device that is new."""
        before = self._before.get(device)
        self._before[device] = (now, counters)
        if before is None:
            return {}
        grown = {name: value - before[1].get(name, value) for name, value in counters.items()}
        return {"seconds": now - before[0], **grown}


def cpu() -> Sampler:
    """Utilisation of every core and of all together, and time waiting for input and output."""
    import psutil

    growth = _Growth()

    def sample(now: float) -> Iterator[Sample]:
        cores = [_cpu_times(times) for times in psutil.cpu_times(percpu=True)]
        together = {name: sum(core[name] for core in cores) for name in cores[0]}
        for name, times in (("cpu", together), *((f"cpu{i}", c) for i, c in enumerate(cores))):
            grown = growth.of(name, now, times)
            # A clock tick is 10 ms: there may be none between two calls.
            if grown and grown["all"] > 0:
                for dimension, part in (("CPUUtilization", "busy"), ("IOWait", "iowait")):
                    if part in grown:
                        # Time of waiting can be taken back by Linux.
                        share = min(max(grown[part] / grown["all"], 0.0), 1.0)
                        yield Sample("cpu", name, dimension, 100 * share, "percent")

    return sample


def _cpu_times(times: Any) -> dict[str, float]:
    """Seconds in all, seconds busy, and where the system tells it waiting for input and output."""
    fields = times._asdict()
    # Guests run within user and nice.
    total = sum(value for name, value in fields.items() if not name.startswith("guest"))
    idle = fields["idle"] + fields.get("iowait", 0.0)
    waiting = {"iowait": fields["iowait"]} if "iowait" in fields else {}
    return {"all": total, "busy": total - idle, **waiting}


def memory() -> Sampler:
    """Memory and swap in bytes, and how much of it is used."""
    import psutil

    def sample(now: float) -> Iterator[Sample]:
        virtual, swap = psutil.virtual_memory(), psutil.swap_memory()
        for name, dimension, value in (
            ("virtual", "Total", virtual.total), ("virtual", "Used", virtual.used),
            ("virtual", "Available", virtual.available), ("swap", "Total", swap.total),
            ("swap", "Used", swap.used), ("swap", "Free", swap.free),
        ):  # fmt: skip
            yield Sample("memory", name, f"{dimension}Bytes", value, "bytes")
        yield Sample("memory", "virtual", "MemoryUsedPercent", virtual.percent, "percent")

    return sample


def disk() -> Sampler:
    """What each disk read and wrote: totals, and rates since the call before."""
    import psutil

    def counters() -> dict[str, dict[str, tuple[float, str]]]:
        return {
            device: {
                "Read": (io.read_bytes, "bytes"), "Write": (io.write_bytes, "bytes"),
                "ReadOperations": (io.read_count, "count"),
                "WriteOperations": (io.write_count, "count"),
            }
            for device, io in (psutil.disk_io_counters(perdisk=True, nowrap=False) or {}).items()
        }  # fmt: skip

    return _totals_and_rates("i/o", counters)


def network() -> Sampler:
    """What each interface sent and received: totals, and rates since the call before."""
    import psutil

    def counters() -> dict[str, dict[str, tuple[float, str]]]:
        return {
            device: {
                "Sent": (io.bytes_sent, "bytes"), "Received": (io.bytes_recv, "bytes"),
                "SentPackets": (io.packets_sent, "count"),
                "ReceivedPackets": (io.packets_recv, "count"),
            }
            for device, io in (psutil.net_io_counters(pernic=True, nowrap=False) or {}).items()
        }  # fmt: skip

    return _totals_and_rates("network", counters)


def _totals_and_rates(
    type: str, counters: Callable[[], dict[str, dict[str, tuple[float, str]]]]
) -> Sampler:
    growth = _Growth()

    def sample(now: float) -> Iterator[Sample]:
        for device, values in counters().items():
            if not any(value for value, _ in values.values()):
                continue  # never used, as most loop devices
            grown = growth.of(device, now, {name: value for name, (value, _) in values.items()})
            for name, (value, unit) in values.items():
                word = "Bytes" if unit == "bytes" else ""
                yield Sample(type, device, f"{name}{word}", value, unit)
                if grown and grown["seconds"] > 0 and grown[name] >= 0:
                    rate = grown[name] / grown["seconds"]
                    yield Sample(type, device, f"{name}{word}PerSecond", rate, f"{unit}/s")

    return sample
