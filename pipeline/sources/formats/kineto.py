"""torch.profiler (Kineto): an object with its rank, host and clock base among its keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pipeline.sources.formats.base import Format, Identity, rank_in_name

__all__ = ["FORMAT"]

_KEYS = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
)
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|kernel|python_function|gpu_memcpy)"'
)
# tensorboard_trace_handler: <host>_<pid>.<time ns>.pt.trace.json
_WORKER = re.compile(r"(?:^|/)(?P<host>[^/]+)_\d+\.\d+\.pt\.trace\.json")
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,12})')
_HOST = re.compile(rb'"host_name"\s*:\s*"([^"\\]+)"')


def _claims_path(path: str) -> bool:
    return ".pt.trace.json" in path.rsplit("/", 1)[-1]


def _claims_text(path: str, text: bytes) -> bool:
    return bool(_KEYS.search(text) or _CATEGORIES.search(text))


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    worker, host, rank = _WORKER.search(path), _HOST.search(text), _RANK.search(text)
    node = worker.group("host") if worker else None
    if host:
        node = host.group(1).decode("utf-8", "replace")
    return Identity(
        node=node, rank=_integer(int(rank.group(1)), 32) if rank else rank_in_name(path)
    )


def _integer(value: Any, bits: int) -> int | None:
    """A whole number that fits into a signed column of that width, else None."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def _from_metadata(metadata: dict[str, Any]) -> Identity:
    distributed = metadata.get("distributedInfo")
    host = metadata.get("host_name")
    given = distributed.get("rank") if isinstance(distributed, dict) else None
    base = metadata.get("baseTimeNanoseconds")
    node = host if isinstance(host, str) else None
    rank, base_ns = _integer(given, 32), _integer(base, 64)
    told = (
        ("host_name", host, node),
        ("rank", given, rank),
        ("baseTimeNanoseconds", base, base_ns),
    )
    odd = (key for key, said, read in told if said is not None and read is None)
    return Identity(
        node, rank, base_ns, tuple(f"{key} left out: it makes no sense" for key in odd)
    )


FORMAT = Format("kineto", _claims_path, _claims_text, _identify, _from_metadata)
