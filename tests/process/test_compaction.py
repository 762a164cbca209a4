"""Compactions that are at work at once, of which one removes what another is about to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.errors import StorageError
from pipeline.store import compact as module
from pipeline.store.verify import verify

EVENT = '{"ph":"X","name":"a","ts":%d,"dur":1,"pid":1}'


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two runs of three files each, every file of an ingest of its own."""
    lake = tmp_path / "lake"
    for run in ("one", "two"):
        for number in range(3):
            trace = tmp_path / f"{run}{number}.json"
            trace.write_text(f"[{EVENT % number}]")
            pipeline.ingest(trace, lake, run=run)
    return lake


def compaction(lake: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Another process that compacts, and waits for nobody who still reads."""
    command = [sys.executable, "-m", "pipeline", "compact", "--lake", str(lake), "--grace", "0"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def times(lake: Path) -> list[Any]:
    with pipeline.Store.open(lake) as store:
        assert verify(store) == []
        return store.sql("SELECT run, ts_ns FROM events ORDER BY ALL").rows()


EVERY = [(run, number * 1000) for run in ("one", "two") for number in range(3)]


@pytest.mark.parametrize("moment", ["_merge", "_rewrite"])
def test_another_compaction_removes_what_this_one_was_to_read(
    lake: Path, moment: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(module, moment)
    calls = 0

    def after_another(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            assert compaction(lake, environment).wait() == 0
        return original(*arguments)

    monkeypatch.setattr(module, moment, after_another)
    with pipeline.Store.open(lake) as store:
        module.compact(store)
    assert calls > 0
    assert times(lake) == EVERY


def test_compactions_at_once_lose_nothing(lake: Path, environment: dict[str, str]) -> None:
    others = [compaction(lake, environment) for _ in range(4)]
    assert [other.wait() for other in others] == [0] * 4
    assert times(lake) == EVERY


def test_rows_that_are_in_no_file_are_told_and_stay_so(lake: Path) -> None:
    next(lake.glob("events/run=one/*/*/*.parquet")).unlink()
    with pipeline.Store.open(lake) as store:
        with pytest.raises(StorageError, match=r"hold 2 of 3 rows .* tracelake verify"):
            module.compact(store, grace_seconds=0)
        assert store.run("one").events().height == 2
        assert len({difference.uri for difference in verify(store)}) == 1
