"""The answers of smdebug 1.0.34 on real jobs and a synthetic one, by SQL over the views."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
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
def store(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pipeline.Store]:
    folder = tmp_path_factory.mktemp("jobs")
    job = folder / "synthetic_job"
    make = [sys.executable, str(shared / "tools" / "make_job.py"), str(job)]
    subprocess.run([*make, "--nodes", "2", "--steps", "600", "--ops", "60"], check=True)
    sources = [str(job), *(str(shared / "traces" / "smdebug" / name) for name in JOBS[:-1])]
    pipeline.ingest(sources, folder / "lake")
    with pipeline.Store.open(folder / "lake") as opened:
        yield opened


def matches(store: pipeline.Store, parameters: dict[str, Any], where: str, want: Any) -> None:
    """Count, durations, phases and ends of the slices that a condition takes."""
    (got,) = store.sql(SUMMARY + where, parameters).to_dicts()
    assert got["count"] == want["count"]
    assert round(got["sum_ns"] / 1000) == round(want["sum_duration_us"])
    assert got["first_start_us"] == want["first_start_us"]
    assert got["last_end_us"] == want["last_end_us"]
    phases = store.sql(BY_PHASE + where + " GROUP BY 1", parameters).rows()
    assert dict(phases) == want["by_phase"]


@pytest.mark.parametrize("job", JOBS)
def test_all_framework_events(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    matches(store, {"run": job}, "", golden[job]["all_framework_events"])


@pytest.mark.parametrize("job", JOBS)
def test_events_in_range(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    for want in golden[job].get("events_in_range", []):
        bounds = {"run": job, "start": want["start_us"], "until": want["end_us"]}
        matches(store, bounds, RANGE, want)


@pytest.mark.parametrize("job", JOBS)
def test_by_file_suffix(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    query = """
        SELECT regexp_extract(
            uri, '(pythontimeline|model_timeline|horovod_timeline)\\.json$|trace\\.json\\.gz$'
        ) AS suffix, count(*)
        FROM events JOIN sources USING (ingest_id)
        WHERE events.run = $run AND kind = 'slice' AND dur_ns IS NOT NULL GROUP BY ALL
    """
    assert dict(store.sql(query, {"run": job}).rows()) == golden[job]["by_file_suffix"]


@pytest.mark.parametrize("job", ["test_traces", "synthetic_job"])
def test_system_events(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    query = """
        SELECT count(*), round(coalesce(sum(value), 0), 2) FROM metrics
        WHERE run = $run AND ($type IS NULL OR resource = $type)
            AND ts_ns BETWEEN $start::BIGINT * 1000000000 AND $until::BIGINT * 1000000000
    """
    for want in golden[job]["system_events"]:
        bounds = {
            "run": job,
            "type": want["type"],
            "start": want["start_s"],
            "until": want["end_s"],
        }
        assert store.sql(query, bounds).rows() == [(want["count"], round(want["sum_value"], 2))]


@pytest.mark.parametrize("job", ["merge_traces", "synthetic_job"])
def test_step_interval(store: pipeline.Store, golden: dict[str, Any], job: str) -> None:
    for want in golden[job]["step_interval"]:
        bounds = {"run": job, "first": want["start_step"], "until": want["end_step"]}
        found = store.sql("FROM step_interval($run, $first, $until)", bounds).rows()
        if want["start_us"] == 0:
            assert found == []
            continue
        ((clock, _, start, end),) = found
        assert (clock, start // 1000, end // 1000) == ("epoch", want["start_us"], want["end_us"])
        events = "SELECT count(*) FROM events_between($run, $start, $until)"
        count = store.sql(events, {"run": job, "start": start, "until": end}).item()
        assert count == want["events"]


def nanoseconds(text: str) -> int:
    """Of a time as smdebug writes it."""
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S:%f").replace(tzinfo=UTC)
    return (int(moment.timestamp()) * 1_000_000 + moment.microsecond) * 1000


def sums(rows: pl.DataFrame, by: str) -> dict[str, int]:
    """Microseconds of ``dur_ns`` by a column."""
    return {key: total // 1000 for key, total in rows.group_by(by).agg(pl.sum("dur_ns")).rows()}


def shares(parts: dict[str, int]) -> dict[str, float]:
    return {key: value / max(parts.values()) for key, value in parts.items()}


def test_overlap_by_timesteps(store: pipeline.Store, golden: dict[str, Any]) -> None:
    want = golden["synthetic_job"]["overlap_by_timesteps"]
    instants = [nanoseconds(text) for text in want["timesteps"]]
    rows = store.sql("FROM overlap_at('synthetic_job', $at)", {"at": instants})
    steps = pl.col("process_name").str.starts_with("Step:")
    assert sums(rows.filter(steps), "process_name") == want["training_phase"]
    assert sums(rows.filter(~steps), "name") == want["detailed"]
    assert shares(sums(rows.filter(~steps), "process_name")) == pytest.approx(want["metrics"])


def test_overlap_by_ranges(store: pipeline.Store, golden: dict[str, Any]) -> None:
    want = golden["synthetic_job"]["overlap_by_ranges"]
    intervals = [
        {"start_ns": nanoseconds(start), "end_ns": nanoseconds(end)}
        for start, end in zip(want["begin"], want["end"], strict=True)
    ]
    rows = store.sql("FROM overlap_during('synthetic_job', $during)", {"during": intervals})
    rows = rows.filter(~pl.col("process_name").str.starts_with("Step:"))
    assert shares(sums(rows, "process_name")) == pytest.approx(want["metrics"])
    assert shares(sums(rows, "name")) == pytest.approx(want["detailed"])
