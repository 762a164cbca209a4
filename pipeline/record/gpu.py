"""What the GPUs do: NVIDIA's by NVML (``tracelake[gpu]``), and PyTorch's memory on them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pipeline.errors import UsageError
from pipeline.extras import extra
from pipeline.record.samplers import Sample, Sampler

__all__ = ["cuda_memory", "nvidia"]

_LOGGER = logging.getLogger(__name__)


def nvidia(gpu: bool | Literal["auto"]) -> Sampler | None:
    """Utilisation, memory, power and temperature of every NVIDIA GPU; None where there is none.

    ``True`` raises ``UsageError`` where there is none, or NVML does not answer.
    """
    if gpu not in (True, False, "auto"):
        raise UsageError(f"gpu={gpu!r}: give True, False or 'auto'")
    if gpu is False:
        return None
    try:
        nvml = extra("pynvml", "gpu")
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    except UsageError:
        if gpu is True:
            raise
        return None
    except nvml.NVMLError as error:
        if gpu is True:
            raise UsageError(f"no NVIDIA GPU can be asked: {error}") from error
        return None
    if not handles:
        if gpu is True:
            raise UsageError("there is no NVIDIA GPU: leave gpu=True out")
        return None

    def sample(now: float) -> Iterator[Sample]:
        for number, handle in enumerate(handles):
            for dimension, unit, ask in _questions(nvml, handle):
                try:
                    value = ask()
                except nvml.NVMLError as error:
                    # Not every GPU knows everything; one that is lost is not the others' fault.
                    _LOGGER.debug("gpu%d has no %s: %s", number, dimension, error)
                    continue
                yield Sample("gpu", f"gpu{number}", dimension, value, unit)

    return sample


def _questions(nvml: Any, handle: Any) -> Iterator[tuple[str, str, Callable[[], float]]]:
    yield "GPUUtilization", "percent", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu
    yield "GPUMemoryUtilization", "percent", lambda: _share_of_memory(nvml, handle)
    yield "MemoryUsedBytes", "bytes", lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used
    yield "MemoryTotalBytes", "bytes", lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total
    # NVML counts milliwatts.
    yield "Power", "watts", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000
    kind = nvml.NVML_TEMPERATURE_GPU
    yield "Temperature", "celsius", lambda: nvml.nvmlDeviceGetTemperature(handle, kind)


def _share_of_memory(nvml: Any, handle: Any) -> float:
    info = nvml.nvmlDeviceGetMemoryInfo(handle)
    return 100.0 * info.used / info.total if info.total else 0.0


def cuda_memory(now: float) -> Iterator[Sample]:
    """What PyTorch's allocator holds on each GPU of this process, once torch is there and uses
    CUDA; torch is never imported for it.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    for number in range(cuda.device_count()):
        for dimension, ask in (
            ("AllocatedBytes", cuda.memory_allocated), ("ReservedBytes", cuda.memory_reserved),
        ):  # fmt: skip
            yield Sample("gpu", f"gpu{number}", f"PyTorch{dimension}", ask(number), "bytes")
