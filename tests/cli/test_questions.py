"""Commands that ask about a run, on the sample job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pipeline
from tests.cli.command import Run, one_line
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the sample job, read-only by agreement."""
    lake = tmp_path_factory.mktemp("sample") / "lake"
    pipeline.ingest(ROOT / "data" / "cifar-cnn", lake)
    return lake


@pytest.fixture
def asked(tracelake: Run, sample: Path) -> Run:
    def ask(*arguments: object) -> object:
        return tracelake(*arguments, "--lake", sample)

    return ask  # type: ignore[return-value]


def test_steps(asked: Run) -> None:
    lines = asked("steps", "--format", "csv").stdout.splitlines()
    assert lines[0] == (
        "run,node,rank,mode,step,start_ns,end_ns,dur_ns,complete,slices,clock,ingest_id"
    )
    assert sum(",TRAIN," in line for line in lines) == 90
    stats = json.loads(asked("steps", "--stats", "--format", "json").stdout)
    assert {row["name"]: row["steps"] for row in stats}["TRAIN"] == 90
    stats = json.loads(asked("steps", "--stats", "process", "--format", "json").stdout)
    assert {row["name"]: row["steps"] for row in stats}["Forward"] == 100
    outliers = json.loads(asked("steps", "--outliers", "1.5", "--format", "json").stdout)
    assert all(row["ratio"] >= 1.5 for row in outliers)


def test_events_metrics_and_overlap_of_steps(asked: Run, tmp_path: Path) -> None:
    events = json.loads(
        asked("events", "--steps", "10:12", "--name", "SGD.step", "--format", "json").stdout
    )
    assert [(row["name"], row["rank"]) for row in events] == [
        ("SGD.step", 1), ("SGD.step", 0), ("SGD.step", 0), ("SGD.step", 1),
    ]  # fmt: skip
    process = asked("events", "--steps", "10", "-o", "events.parquet")
    assert (process.returncode, process.stdout) == (0, "")
    assert (tmp_path / "events.parquet").stat().st_size > 0
    samples = json.loads(asked("metrics", "--metric", "CPUUtilization", "--format", "json").stdout)
    assert {row["metric"] for row in samples} == {"CPUUtilization"}
    rows = json.loads(asked("overlap", "--steps", "10:12", "--format", "json").stdout)
    assert {row["name"]: row["pairs"] for row in rows}["SGD.step"] == 4


def test_merge(asked: Run, tmp_path: Path) -> None:
    process = asked("merge", "--steps", "2:4", "-o", "merged.json")
    assert process.returncode == 0
    assert process.stdout.startswith("merged.json: ")
    document = json.loads((tmp_path / "merged.json").read_text())
    steps = [event["args"]["step_num"] for event in document if event["name"].startswith("Step:")]
    # Rank 0 is still in its step 1 where rank 1 begins its step 2.
    assert sorted(map(int, steps)) == [1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["steps", "--run", "other"], 4, "no run 'other' in the lake"),
        (["events", "--steps", "900:901"], 2, "no steps 900:901: it has steps from 0 to 44"),
        (["events", "--steps", "4:2"], 2, "empty range"),
        (["events", "--steps", "two"], 2, "give FIRST:UNTIL"),
        (["events", "--start", "9", "--end", "5"], 2, "reversed"),
        (["events", "--start", "noon"], 2, "'noon' is no time"),
        (["overlap"], 2, "give --steps, or --start and --end"),
        (["overlap", "--steps", "1:2", "--start", "5"], 2, "give --steps, or --start and --end"),
        (["steps", "--stats", "mode", "--outliers", "2"], 2, "not both"),
        (["merge", "-o", "no/such/folder.json"], 6, "cannot write no/such/folder.json"),
    ],
)
def test_bad_questions(asked: Run, arguments: list[str], code: int, says: str) -> None:
    process = asked(*arguments)
    assert process.returncode == code
    assert says in one_line(process)


def test_a_run_has_to_be_chosen_where_there_are_several(tracelake: Run, trace: Path) -> None:
    for name in ("one", "two"):
        folder = trace.parent.parent / name
        folder.mkdir()
        (folder / "trace.json").write_text(trace.read_text())
        tracelake("ingest", name, "--lake", "lake")
    process = tracelake("steps", "--lake", "lake")
    assert process.returncode == 2
    assert "choose a run with --run; the lake has 'one', 'two'" in one_line(process)
