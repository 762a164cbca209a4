"""Files of events that the benchmarks ingest."""

from __future__ import annotations

from pathlib import Path

import duckdb

__all__ = ["write_events"]

_EVENTS = """
    COPY (
        SELECT 'X' AS ph, 'op_' || i % 200 AS name, i % 8 AS pid, i % 3 AS tid,
            1600000000000000 + i * 8 AS ts, hash(i) % 2000 AS dur
        FROM range($first::BIGINT, $last::BIGINT) AS t(i)
    ) TO $path (FORMAT json)
"""


def write_events(folder: Path, events: int, file_events: int) -> None:
    """So many slices, one every eight microseconds, in files of ``file_events`` each."""
    folder.mkdir()
    for place, first in enumerate(range(0, events, file_events)):
        last = min(first + file_events, events)
        path = str(folder / f"{place}.json")
        duckdb.execute(_EVENTS, {"first": first, "last": last, "path": path})
