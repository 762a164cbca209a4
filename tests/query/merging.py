"""What a merged timeline reads back as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pipeline

BASE = 1596668220000000


def read_back(tmp_path: Path, *documents: list[dict[str, Any]]) -> tuple[Path, Any, Any]:
    """The merged timeline of some documents, their events, and those that it reads back as."""
    for number, events in enumerate(documents):
        source = tmp_path / "job" / f"{number}.json"
        source.parent.mkdir(exist_ok=True)
        source.write_text(json.dumps(events))
    pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        want = store.run("job").events()
        path = store.run("job").merge_timeline(tmp_path / "merged.json")
    pipeline.ingest(path, tmp_path / "again", "again")
    with pipeline.Store.open(tmp_path / "again") as store:
        got = store.run("again").events()
    return path, want.sort("ts_ns", "name"), got.sort("ts_ns", "name")
