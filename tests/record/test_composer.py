"""Composer's callback: the protocol that its trainer calls, with its own package where that is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from pipeline.errors import UsageError


class Profiler:
    """Keeps the counters of the markers; sets ``told`` when it has some of each wanted kind."""

    def __init__(self, wanted: set[str]) -> None:
        self.counters: dict[str, dict[str, float]] = {}
        self.categories: dict[str, list[str]] = {}
        self.wanted = wanted
        self.told = threading.Event()

    def marker(self, name: str, categories: list[str]) -> SimpleNamespace:
        self.categories[name] = categories

        def counter(values: dict[str, float]) -> None:
            self.counters[name] = values
            if self.wanted <= {each.split("/")[0] for each in self.counters}:
                self.told.set()

        return SimpleNamespace(counter=counter)


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class, on top of Composer's or of a class of the same protocol."""
    monkeypatch.delitem(sys.modules, "pipeline.record.composer", raising=False)
    if find_spec("composer") is None:
        for name in ("composer", "composer.core", "composer.core.callback"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules["composer.core.callback"].Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    if find_spec("torch") is None:
        monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
        sys.modules["torch"].cuda = SimpleNamespace(memory_stats=dict)  # type: ignore[attr-defined]
    yield import_module("pipeline.record.composer").SystemProfiler
    sys.modules.pop("pipeline.record.composer", None)


def recorded(callback: Any, wanted: set[str], **arguments: Any) -> Profiler:
    """What a trainer's profiler gets between init and close."""
    profiler = Profiler(wanted)
    recording = callback(stats_thread_interval_seconds=0.01, **arguments)
    recording.init(SimpleNamespace(profiler=profiler), None)
    assert profiler.told.wait(30)
    recording.close(SimpleNamespace(profiler=profiler), None)
    return profiler


def test_markers_are_composers_with_the_right_units(
    callback: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(used=1024, free=512))
    import torch

    stats = {
        "allocated_bytes.all.current": 7, "allocated_bytes.all.peak": 9,
        "allocated_bytes.small_pool.peak": 1, "num_alloc_retries": 2,
    }  # fmt: skip
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: stats)
    memory = SimpleNamespace(used=2048, available=4096)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    disk = SimpleNamespace(read_count=1, write_count=2, read_bytes=3, write_bytes=4, read_time=5,
                           write_time=6)  # fmt: skip
    nic = SimpleNamespace(bytes_sent=800, bytes_recv=80)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: {"sda": disk})
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic, nowrap: {"eth0": nic})
    got = recorded(callback, {"cpu", "memory", "disk", "network"}, profile_memory=True,
                   profile_disk=True, profile_net=True)  # fmt: skip
    share = got.counters.pop("cpu")["cpu_percent"]
    assert 0 <= share <= 100
    assert got.counters == {
        "memory/cuda/current_allocated_bytes": {"current_allocated_bytes": 7},
        "memory/cuda/peak_allocated_bytes": {"peak_allocated_bytes": 9},
        "memory/cuda/alloc_retries": {"alloc_retries": 2},
        "memory/swap": {"used_bytes": 1024, "free_bytes": 512},
        "memory/virtual": {"used_bytes": 2048, "available_bytes": 4096},
        "disk/sda/read_count": {"read_count": 1}, "disk/sda/write_count": {"write_count": 2},
        "disk/sda/read_bytes": {"read_bytes": 3}, "disk/sda/write_bytes": {"write_bytes": 4},
        "disk/sda/read_time": {"read_time": 5}, "disk/sda/write_time": {"write_time": 6},
        "network/eth0/bytes_sent": {"bytes_sent": 800},
        "network/eth0/bytes_recv": {"bytes_recv": 80},
    }  # fmt: skip
    assert got.categories["network/eth0/bytes_sent"] == ["net"]
    assert got.categories["memory/swap"] == ["memory"]


def test_by_default_the_cpu_alone(callback: Any) -> None:
    assert set(recorded(callback, {"cpu"}).counters) == {"cpu"}


def test_what_fails_ends_nothing_else(callback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "swap_memory", lambda: 1 / 0)
    got = recorded(callback, {"cpu", "network"}, profile_memory=True, profile_net=True)
    assert "memory/swap" not in got.counters


def test_gpus_that_fail_leave_the_memory_of_the_machine(
    callback: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: 1 / 0)
    got = recorded(callback, {"memory"}, profile_cpu=False, profile_memory=True)
    assert set(got.counters) == {"memory/swap", "memory/virtual"}


def test_a_second_init_ends_what_the_first_began(callback: Any) -> None:
    profiler = Profiler({"cpu"})
    recording = callback(stats_thread_interval_seconds=0.01)
    threads = threading.active_count()
    for _ in range(3):
        recording.init(SimpleNamespace(profiler=profiler), None)
    assert threading.active_count() == threads + 1
    recording.close(SimpleNamespace(profiler=profiler), None)
    assert threading.active_count() == threads


def test_a_trainer_without_a_profiler(callback: Any) -> None:
    with pytest.raises(RuntimeError, match="needs Composer's profiler"):
        callback().init(SimpleNamespace(profiler=None), None)


def test_without_composer_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pipeline.record.composer", raising=False)
    monkeypatch.setitem(sys.modules, "composer.core.callback", None)
    with pytest.raises(UsageError, match=r"pip install 'tracelake\[composer\]'"):
        import_module("pipeline.record.composer")
