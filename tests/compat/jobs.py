"""Small jobs in the layout of smdebug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASE = 1596668220000000
"""2020-08-05 22:57, in microseconds since the epoch."""


def event(name: str, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def write_framework(
    job: Path, events: list[dict[str, Any]], end: int = BASE + 9, base: int = BASE
) -> None:
    folder = job / "framework" / "pevents" / "2020080522"
    folder.mkdir(parents=True, exist_ok=True)
    meta = [
        {"ph": "M", "name": "process_name", "pid": 0,
         "args": {"start_time_since_epoch_in_micros": base}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "phase"}},
    ]  # fmt: skip
    (folder / f"{end}_7-algo-1_pythontimeline.json").write_text(json.dumps(meta + events))


def write_system(job: Path, second: int) -> None:
    folder = job / "system" / "incremental" / "2020080522"
    folder.mkdir(parents=True, exist_ok=True)
    sample = {
        "Type": "cpu", "Name": "cpu0", "Dimension": "CPUUtilization", "Value": 5.0,
        "NodeId": "algo-1", "Timestamp": second + 0.5,
    }  # fmt: skip
    (folder / f"{second}.algo-1.json").write_text(json.dumps(sample) + "\n")
