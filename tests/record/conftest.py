"""A clock that a test winds, a hook, and what a recorder wrote."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.record import TorchHook
from pipeline.record.clock import Clock

START = 1_600_000_000
"""2020-09-13 12:26:40, 40 seconds into a minute."""


class Simulated(Clock):
    """Time passes where it is waited for; ``at_tick`` is called with the number of the wait."""

    def __init__(self, ticks: int, at_tick: Callable[[int], object] = lambda tick: None) -> None:
        self.ticks, self.at_tick = ticks, at_tick
        self.waits = 0
        self.elapsed = 0.0
        self.stepped = 0.0

    def time_ns(self) -> int:
        return round((START + self.elapsed + self.stepped) * 10**9)

    def monotonic(self) -> float:
        return 5000.0 + self.elapsed

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.elapsed += max(seconds, 0.0)
        self.waits += 1
        self.at_tick(self.waits)
        return self.waits >= self.ticks


def written(job: Path) -> list[dict[str, Any]]:
    """The samples in all files of a job, in the order of the names of the files."""
    files = sorted(job.glob("system/incremental/*/*.json*"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "job"


@pytest.fixture
def hook(job: Path) -> Iterator[TorchHook]:
    with TorchHook(job, node="n1") as hook:
        yield hook
