"""Jobs for flows, and what the server knows of their runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

import pipeline
from tests.compat.jobs import BASE, event, write_framework, write_system

ROWS = "SELECT node, seq, kind, ts_ns, dur_ns, name, process_name, args FROM events ORDER BY ALL"
T = TypeVar("T")


def write_job(folder: Path, files: int = 8, events: int = 40) -> Path:
    """A job of so many framework files, and system metrics."""
    for no in range(files):
        first = no * 1_000_000
        rows = [event(f"op{n % 7}", first + n, 5) for n in range(events)]
        write_framework(folder, rows, end=BASE + first + events)
    write_system(folder, BASE // 1_000_000)
    return folder


def rows_of(lake: Any, options: dict[str, Any] | None = None) -> pl.DataFrame:
    """All events of a lake, in an order that does not depend on how it was made."""
    with pipeline.Store.open(lake, options) as store:
        return store.sql(ROWS)


def wait_for(look: Callable[[], T | None], seconds: float = 90) -> T:
    """What ``look`` gives as soon as it gives something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s in vain")


def artifacts(key: str, run: Any = None) -> list[Any]:
    """Data of the artifacts of a key, the newest first; of all flow runs, or of one."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    with get_client(sync_client=True) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
        found = client.read_artifacts(artifact_filter=wanted)
    if run is not None:
        found = [artifact for artifact in found if artifact.flow_run_id == run.id]
    found.sort(key=lambda artifact: artifact.created, reverse=True)
    return [artifact.data for artifact in found]
