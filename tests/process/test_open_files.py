"""A file that is read while it is open, and again when its writer has closed it, counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from pipeline.store.compact import compact
from pipeline.store.verify import verify
from tests.compat.jobs import BASE, event, write_framework

HOUR = "framework/pevents/2020080522"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job that has ended, with a file that its writer has not closed yet."""
    job = tmp_path / "job"
    write_framework(job, [event("closed", 0, 1)], end=BASE + 1)
    write_framework(job, [event("open", 0, 1)], end=BASE + 2)
    closed = job / HOUR / f"{BASE + 2}_7-algo-1_pythontimeline.json"
    closed.rename(job / "framework" / "7-algo-1_pythontimeline.json.tmp")
    (job / "framework" / "training_job_end.ts").touch()
    return job


def rename(job: Path) -> None:
    opened = job / "framework" / "7-algo-1_pythontimeline.json.tmp"
    opened.rename(job / HOUR / f"{BASE + 9}_7-algo-1_pythontimeline.json")


def content(lake: Path) -> list[tuple[str, str]]:
    with pipeline.Store.open(lake) as store:
        assert verify(store) == []
        query = "SELECT name, parse_filename(uri) FROM events JOIN sources USING (ingest_id)"
        return sorted(store.sql(query).rows())


CLOSED = ("closed", f"{BASE + 1}_7-algo-1_pythontimeline.json")
OPEN = ("open", "7-algo-1_pythontimeline.json.tmp")
RENAMED = ("open", f"{BASE + 9}_7-algo-1_pythontimeline.json")


@pytest.mark.parametrize("workers", [1, 2])
def test_under_its_new_name_it_takes_the_place_of_the_old(
    job: Path, tmp_path: Path, workers: int
) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    assert content(lake) == [CLOSED, OPEN]
    rename(job)
    assert pipeline.ingest(job, lake, workers=workers).files == 1
    for _ in range(3):
        assert content(lake) == [CLOSED, RENAMED]
        assert pipeline.ingest(job, lake).files == 0
        with pipeline.Store.open(lake) as store:
            compact(store, grace_seconds=0)


def test_a_name_that_comes_again_is_a_file_like_any_other(job: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    rename(job)
    pipeline.ingest(job, lake)
    write_framework(job / "elsewhere", [event("again", 0, 1)], end=BASE + 2)
    made = job / "elsewhere" / HOUR / f"{BASE + 2}_7-algo-1_pythontimeline.json"
    made.rename(job / "framework" / "7-algo-1_pythontimeline.json.tmp")
    pipeline.ingest(job, lake)
    assert content(lake) == [("again", OPEN[1]), CLOSED, RENAMED]


def test_one_that_is_just_gone_is_hidden(job: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    (job / "framework" / "7-algo-1_pythontimeline.json.tmp").unlink()
    report = pipeline.ingest(job, lake)
    assert (report.files, report.unchanged) == (0, 1)
    assert content(lake) == [CLOSED]


def test_only_below_what_was_listed(job: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    pipeline.ingest(job, lake)
    rename(job)
    other = tmp_path / "job2"
    write_framework(other, [event("other", 0, 1)])
    pipeline.ingest(other, lake)
    pipeline.ingest(job / HOUR / CLOSED[1], lake, run="job")
    assert OPEN in content(lake)
    # A closed file that is gone stays: it may have been put away once it was read.
    (job / HOUR / CLOSED[1]).unlink()
    pipeline.ingest(job, lake)
    assert set(content(lake)) >= {CLOSED, RENAMED}
    assert OPEN not in content(lake)
