"""``MergedTimeline``: one Chrome trace of everything in a range of time or of steps."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeline.compat.smdebug.job import job_of
from pipeline.errors import UsageError

__all__ = ["MergeUnit", "MergedTimeline"]

_LOW_GPU = 85.0


class MergeUnit(Enum):
    """What the ends of a merged timeline count."""

    TIME = "time"
    STEP = "step"


class MergedTimeline:
    """Merges the timelines of a trace folder into files of ``output_directory``.

    ``file_suffix_filter`` lists endings of the files that are taken, as in
    ``["model_timeline.json"]``; by default all. ``output_directory`` is by default the folder
    itself.
    """

    def __init__(
        self,
        path: str,
        file_suffix_filter: Sequence[str] | None = None,
        output_directory: str | None = None,
    ) -> None:
        self.path = path
        self.out_dir = path if output_directory is None else output_directory
        self.file_suffix_filter = file_suffix_filter
        self._job = job_of(str(path))

    def file_name(self, end_timestamp_in_us: float) -> str:
        """Where a timeline that ends at this time is written."""
        name = f"{round(end_timestamp_in_us)}_{os.getpid()}-{socket.gethostname()}"
        return str(Path(self.out_dir) / f"{name}_merged_timeline.json")

    def merge_timeline(
        self,
        start: float,
        end: float,
        unit: MergeUnit | str = MergeUnit.TIME,
        sys_metrics_filter: Mapping[str, Any] | None = MappingProxyType({"lowgpu": ()}),
    ) -> str:
        """Write the timeline between two times in microseconds, or two steps; gives its path.

        ``sys_metrics_filter`` is ``{"lowgpu": (percent,)}``: system metrics become counters, and
        an instant marks where a GPU was used less; 85 percent where none is given, nothing of
        this for an empty one. Raises ``UsageError`` for steps that are not there.
        """
        chosen = {"lowgpu": ()} if sys_metrics_filter is None else sys_metrics_filter
        self._job.refresh()
        ranged: dict[str, Any] = {"start": int(start), "end": int(end), "unit": "us"}
        if MergeUnit(unit) is MergeUnit.STEP:
            first, until = self._job.step_starts(int(start), int(end))
            if first is None or until is None:
                step = int(start) if first is None else int(end)
                raise UsageError(f"{self.path} has no step {step}")
            ranged |= {"start": first, "end": until - 1}
        out = self.file_name(ranged["end"])
        self._job.run.merge_timeline(
            out,
            **ranged,
            sources=self.file_suffix_filter,
            metrics=bool(chosen),
            low_gpu=_threshold(chosen["lowgpu"]) if "lowgpu" in chosen else None,
        )
        return out


def _threshold(given: Any) -> float:
    """Percent of a filter: a number, or the first of several; 85 for none."""
    values = [given] if isinstance(given, int | float) else list(given)
    if not values:
        return _LOW_GPU
    if not isinstance(values[0], int | float):
        raise UsageError(
            f"{given!r} is no threshold: give a percentage, as in {{'lowgpu': (70,)}}"
        )
    return float(values[0])
