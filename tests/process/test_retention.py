"""Old runs are let go of, for good, though the traces they were read from are still there."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from pipeline.batch import commit_batches, write_batch
from pipeline.errors import SourceError
from pipeline.ingestion import prepare
from pipeline.retention import delete_expired
from pipeline.store.compact import compact, delete_run, expire_run
from pipeline.store.verify import verify
from tests.compat.jobs import BASE, event, write_framework


def write_job(job: Path, first: int = 0, until: int = 2) -> Path:
    for number in range(first, until):
        write_framework(job, [event(job.name, number, 1)], end=BASE + number)
    return job


def names(lake: Path) -> list[str]:
    with pipeline.Store.open(lake) as store:
        assert verify(store) == []
        return store.sql("SELECT name FROM events ORDER BY name")["name"].to_list()


def test_a_run_that_was_let_go_of_is_not_read_again(tmp_path: Path) -> None:
    jobs, lake = tmp_path / "jobs", tmp_path / "lake"
    for name in ("old", "new"):
        pipeline.ingest(write_job(jobs / name), lake)
    with pipeline.Store.open(lake) as store:
        assert delete_expired(store, keep_runs=1) == ["old"]
    for _ in range(3):
        again = pipeline.ingest(jobs, lake)
        assert (again.files, again.unchanged, again.let_go) == (0, 4, ("old",))
        with pipeline.Store.open(lake) as store:
            assert delete_expired(store, keep_runs=1) == []
            compact(store, grace_seconds=0)
        assert names(lake) == ["new", "new"]
    assert list(lake.glob("events/run=old/*/*/*.parquet")) == []

    # What comes later is new; the rest stays away.
    write_job(jobs / "old", 2, 3)
    assert pipeline.ingest(jobs, lake).files == 1
    assert names(lake) == ["new", "new", "old"]


def test_what_was_let_go_of_is_read_again_once_it_is_forgotten(tmp_path: Path) -> None:
    job, lake = write_job(tmp_path / "old"), tmp_path / "lake"
    pipeline.ingest(job, lake)
    with pipeline.Store.open(lake) as store:
        assert expire_run(store, "old") == 2
        compact(store, grace_seconds=0)
        with pytest.raises(SourceError, match="no run 'older'"):
            delete_run(store, "older")
        assert delete_run(store, "old") == 2
        compact(store, grace_seconds=0)
        with pytest.raises(SourceError, match="no run 'old'"):
            delete_run(store, "old")
    assert pipeline.ingest(job, lake).files == 2
    assert names(lake) == ["old", "old"]


def test_a_run_is_as_old_as_its_last_reading_and_not_as_its_compaction(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for part in range(2):
        pipeline.ingest(write_job(tmp_path / f"old{part}"), lake, run="old")
    for name in ("middle", "new"):
        pipeline.ingest(write_job(tmp_path / name), lake)
    with pipeline.Store.open(lake) as store:
        assert compact(store, "old", grace_seconds=0).files_before == 2
        assert delete_expired(store, keep_runs=2) == ["old"]
        assert delete_expired(store, keep_days=1) == []
        assert delete_expired(store, keep_days=0) == ["middle", "new"]


def test_what_is_committed_while_a_run_is_let_go_of_is_read_again(tmp_path: Path) -> None:
    job, lake = write_job(tmp_path / "job", 0, 1), tmp_path / "lake"
    pipeline.ingest(job, lake)
    write_job(job, 1, 2)
    prepared = prepare(job, lake)
    written = [write_batch(prepared.place, batch, prepared.latest) for batch in prepared.batches]
    with pipeline.Store.open(lake) as store:
        expire_run(store, "job")
    assert commit_batches(prepared.place, written).files == 1
    assert names(lake) == []
    assert pipeline.ingest(job, lake).files == 1
    assert names(lake) == ["job"]
