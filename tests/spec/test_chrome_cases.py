"""What awkward documents must become, case by case."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import pipeline

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "chrome_trace_cases.json"


def cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip("needs ../shared with the cases"))]
    return [pytest.param(case, id=case["id"]) for case in json.loads(CASES.read_text())]


def document(case: dict[str, Any]) -> bytes:
    if "input_base64" in case:
        return base64.b64decode(case["input_base64"])
    return case["input"].encode()


def fields(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    got = {key: row[key] for key in wanted}
    if "args" in got:
        got["args"] = json.loads(got["args"])
    return got


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Store:
    """All cases in one lake, each file its own run."""
    if not CASES.exists():
        pytest.skip("needs ../shared with the cases")
    folder = tmp_path_factory.mktemp("cases")
    for case in json.loads(CASES.read_text()):
        (folder / f"{case['id']}.json").write_bytes(document(case))
    files = sorted(str(path) for path in folder.glob("*.json"))
    report = pipeline.ingest(files, folder / "lake")
    assert report.files == 64
    return pipeline.Store.open(folder / "lake")


@pytest.mark.parametrize("case", cases())
def test_events(store: pipeline.Store, case: dict[str, Any]) -> None:
    rows = store.run(case["id"]).events().to_dicts()
    got = [fields(row, want) for row, want in zip(rows, case["events"], strict=False)]
    assert got == case["events"]
    assert len(rows) == len(case["events"])


@pytest.mark.parametrize("case", cases())
def test_metrics(store: pipeline.Store, case: dict[str, Any]) -> None:
    rows = store.run(case["id"]).metrics().sort("ts_ns", "device", "metric").to_dicts()
    wanted = case.get("metrics", [])
    assert [fields(row, want) for row, want in zip(rows, wanted, strict=False)] == wanted
    assert len(rows) == len(wanted)


@pytest.mark.parametrize("case", cases())
def test_ledger(store: pipeline.Store, case: dict[str, Any]) -> None:
    (row,) = store.run(case["id"]).sources().to_dicts()
    assert {key: row[key] for key in case["ledger"]} == case["ledger"]
    parts = ("event_rows", "counter_events", "metadata_events", "paired_ends")
    parts += ("unmatched_ends", "rejected")
    assert row["events_read"] == sum(row[part] for part in parts)
