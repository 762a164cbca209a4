"""GPUs: NVIDIA's library is replaced where ctypes calls it, by functions with its signatures."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from pipeline.errors import UsageError
from pipeline.record.gpu import cuda_memory, nvidia
from pipeline.record.samplers import Sample

SUCCESS, NOT_SUPPORTED, GPU_IS_LOST = 0, 3, 15


class Library:
    """What ``libnvidia-ml.so`` answers: two GPUs, and errors by the name of the function."""

    def __init__(self, gpus: int = 2) -> None:
        self.gpus = gpus
        self.errors: dict[tuple[str, int], int] = {}

    def __getattr__(self, name: str) -> Any:
        answer: Callable[..., int] | None = getattr(type(self), f"_{name}", None)
        if answer is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            assert answer is not None
            return answer(self, *arguments)

        kinds = [ctypes.c_void_p] * (answer.__code__.co_argcount - 1)
        if name == "nvmlDeviceGetHandleByIndex_v2":
            kinds[0] = ctypes.c_uint  # type: ignore[call-overload]
        if name == "nvmlDeviceGetTemperature":
            kinds[1] = ctypes.c_uint  # type: ignore[call-overload]
        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(call)

    def _nvmlInitWithFlags(self, flags: int) -> int:
        return SUCCESS

    def _nvmlDeviceGetCount_v2(self, count: int) -> int:
        ctypes.cast(count, ctypes.POINTER(ctypes.c_uint))[0] = self.gpus
        return SUCCESS

    def _nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: int) -> int:
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = index + 1
        return SUCCESS

    def _nvmlDeviceGetUtilizationRates(self, handle: int, rates: int) -> int:
        found = ctypes.cast(rates, ctypes.POINTER(ctypes.c_uint * 2)).contents
        found[0], found[1] = 40 + handle, 99
        return self.errors.get(("utilization", handle), SUCCESS)

    def _nvmlDeviceGetMemoryInfo(self, handle: int, memory: int) -> int:
        found = ctypes.cast(memory, ctypes.POINTER(ctypes.c_ulonglong * 3)).contents
        found[0], found[1], found[2] = 8 << 30, 6 << 30, 2 << 30  # total, free, used
        return self.errors.get(("memory", handle), SUCCESS)

    def _nvmlDeviceGetPowerUsage(self, handle: int, milliwatts: int) -> int:
        ctypes.cast(milliwatts, ctypes.POINTER(ctypes.c_uint))[0] = 250_500
        return self.errors.get(("power", handle), SUCCESS)

    def _nvmlDeviceGetTemperature(self, handle: int, sensor: int, celsius: int) -> int:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        ctypes.cast(celsius, ctypes.POINTER(ctypes.c_uint))[0] = 60 + handle
        return SUCCESS


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    fake = Library()
    monkeypatch.setattr(pynvml, "nvmlLib", fake)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield fake


def sampled(gpu: Any) -> dict[tuple[str, str], tuple[float, str]]:
    sampler = nvidia(gpu)
    assert sampler is not None
    return {(s.name, s.dimension): (s.value, s.unit) for s in sampler(0.0)}


def of_gpu(number: int) -> dict[tuple[str, str], tuple[float, str]]:
    name = f"gpu{number}"
    return {
        (name, "GPUUtilization"): (41 + number, "percent"),
        (name, "GPUMemoryUtilization"): (25.0, "percent"),
        (name, "MemoryUsedBytes"): (2147483648, "bytes"),
        (name, "MemoryTotalBytes"): (8589934592, "bytes"),
        (name, "Power"): (250.5, "watts"),
        (name, "Temperature"): (61 + number, "celsius"),
    }


@pytest.mark.parametrize("gpu", ["auto", True])
@pytest.mark.usefixtures("library")
def test_every_gpu_in_its_units(gpu: Any) -> None:
    assert sampled(gpu) == of_gpu(0) | of_gpu(1)


def test_what_one_gpu_does_not_know_is_left_out(library: Library) -> None:
    library.errors = {("power", 1): NOT_SUPPORTED, ("utilization", 2): GPU_IS_LOST}
    want = of_gpu(0) | of_gpu(1)
    del want["gpu0", "Power"], want["gpu1", "GPUUtilization"]
    assert sampled("auto") == want


def test_a_machine_without_gpus(library: Library) -> None:
    library.gpus = 0
    assert nvidia("auto") is None
    assert nvidia(False) is None
    with pytest.raises(UsageError, match="there is no NVIDIA GPU"):
        nvidia(True)


def test_without_the_library_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda name: ctypes.CDLL("no-such-library"))
    assert nvidia("auto") is None
    with pytest.raises(UsageError, match="no NVIDIA GPU can be asked"):
        nvidia(True)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvidia("auto") is None
    with pytest.raises(UsageError, match=r"pip install 'tracelake\[gpu\]'"):
        nvidia(True)


def test_memory_of_pytorch_once_it_uses_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert list(cuda_memory(0.0)) == []
    assert "torch" not in sys.modules
    uses = {"yes": False}
    cuda = SimpleNamespace(
        is_initialized=lambda: uses["yes"], device_count=lambda: 1,
        memory_allocated=lambda gpu: 100 + gpu, memory_reserved=lambda gpu: 200 + gpu,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert list(cuda_memory(0.0)) == []
    uses["yes"] = True
    assert list(cuda_memory(0.0)) == [
        Sample("gpu", "gpu0", "PyTorchAllocatedBytes", 100, "bytes"),
        Sample("gpu", "gpu0", "PyTorchReservedBytes", 200, "bytes"),
    ]
