"""The answers of smdebug 1.0.34 on real jobs and a synthetic one, by SQL over the views."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pipeline

JOBS = (
    "test_traces",
    "horovod_timeline_traces",
    "model_timeline_traces",
    "merge_traces",
    "tfprofiler_timeline_traces",
    "synthetic_job",
)
SUMMARY = """
    SELECT count(*) AS count, coalesce(sum(dur_ns), 0)::BIGINT AS sum_ns,
        min(ts_ns) // 1000 AS first_start_us, max(end_ns) // 1000 AS last_end_us
    FROM events WHERE run = $run AND kind = 'slice' AND dur_ns IS NOT NULL
"""
BY_PHASE = """
    SELECT process_name, count(*) AS count
    FROM events WHERE run = $run AND kind = 'slice' AND dur_ns IS NOT NULL
"""
RANGE = " AND end_ns >= $start * 1000 AND ts_ns <= $until * 1000"


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "smdebug.json").read_text())


@pytest.fixture(scope="module")
def store(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pipeline.Store]:
    folder = tmp_path_factory.mktemp("jobs")
    job = folder / "synthetic_job"
    make = [sys.executable, str(shared / "tools" / "make_job.py"), str(job)]
    subprocess.run([*make, "--nodes", "2", "--steps", "600", "--ops", "60"], check=True)
    sources = [str(job), *(str(shared / "traces" / "smdebug" / name) for name in JOBS[:-1])]
    pipeline.ingest(sources, folder / "lake")
    with pipeline.Store.open(folder / "lake") as opened:
        yield opened


def is_horovod(job: str) -> bool:
    return job.startswith("horovod")


@pytest.mark.parametrize("job", JOBS)
def test_all_framework_events(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    want = golden[job]["all_framework_events"]
    (got,) = store.sql(SUMMARY, {"run": job}).to_dicts()
    assert got["count"] == want["count"]
    assert round(got["sum_ns"] / 1000) == round(want["sum_duration_us"])
    assert got["first_start_us"] == want["first_start_us"]
    assert got["last_end_us"] == want["last_end_us"]
    phases = store.sql(BY_PHASE + " GROUP BY 1", {"run": job}).rows()
    assert dict(phases) == want["by_phase"]
