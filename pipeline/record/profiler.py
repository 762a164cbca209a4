"""``torch.profiler`` with its files where ingest finds them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError
from pipeline.extras import extra
from pipeline.record.faults import Faults
from pipeline.record.files import node_name, rank_of

__all__ = ["torch_profiler"]


def torch_profiler(
    out: str | os.PathLike[str],
    node: str | None = None,
    rank: int | None = None,
    wait: int = 1,
    warmup: int = 1,
    active: int = 3,
    repeat: int = 1,
    **options: Any,
) -> Any:
    """A ``torch.profiler.profile`` that writes each of its cycles below ``out``, the folder of a
    job, into ``framework/torch_profiler/``.

    Call its ``step`` after each step: ``wait`` of them are left out, ``warmup`` are not kept,
    ``active`` are written, ``repeat`` times (0: to the end). ``rank`` is by default that of the
    environment (``RANK``); ``options`` go to ``profile``. The machine is named as it names
    itself, where ``node`` is no other name, and times are the wall clock's, as with
    ``SystemRecorder`` and ``TorchHook``. A file that cannot be written is told and left out.
    A run that ends before its first ``wait`` and ``warmup`` steps has no file. Needs
    ``tracelake[torch]``; raises ``UsageError`` without it, for numbers of steps that make no
    sense, and for ``options`` that are not open to choice.
    """
    steps = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    for of, count in steps.items():
        if type(count) is not int or count < (of == "active"):
            raise UsageError(f"{of} of {count!r} steps: give a whole number")
    for own in ("schedule", "on_trace_ready"):
        if own in options:
            raise UsageError(f"{own} is torch_profiler's own: give wait, warmup, active, repeat")
    torch = extra("torch", "torch")
    rank = rank_of(rank)
    named = f"{node_name(node)}_{os.getpid()}" + ("" if rank is None else f"_rank{rank}")
    folder = Path(out) / "framework" / "torch_profiler"

    faults = Faults()

    def write(profile: Any) -> None:
        path = folder / f"{named}.{time.time_ns()}.pt.trace.json.gz"
        # Seen only when it is whole. The profiler compresses what is called .gz.
        partial = folder / f".{path.name}"
        with faults.harmless("torch_profiler"):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                profile.export_chrome_trace(str(partial))
                partial.rename(path)
            finally:
                partial.unlink(missing_ok=True)

    schedule = torch.profiler.schedule(**steps)
    return torch.profiler.profile(schedule=schedule, on_trace_ready=write, **options)
