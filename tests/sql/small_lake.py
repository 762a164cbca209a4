"""Tables of a few rows in the place of the views of a lake, with every macro on top; and what to
fill them with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pipeline.sqlfiles import run_sql, sql_files

SLOW = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SPANS = st.tuples(st.integers(0, 40), st.integers(0, 15)).map(lambda p: (p[0], p[0] + p[1]))
"""Starts and ends, of which many touch."""

# The columns of the views that the macros stand on, each with what a row has where none is given.
EVENTS = {
    "run": ("VARCHAR", "job"),
    "node": ("VARCHAR", "node0"),
    "hour": ("VARCHAR", "1970-01-01T00"),
    "ingest_id": ("BIGINT", 1),
    "seq": ("BIGINT", 0),
    "kind": ("VARCHAR", "slice"),
    "ts_ns": ("BIGINT", 0),
    "dur_ns": ("BIGINT", None),
    "end_ns": ("BIGINT", None),
    "name": ("VARCHAR", "op"),
    "category": ("VARCHAR", None),
    "process_name": ("VARCHAR", "process"),
    "thread_name": ("VARCHAR", None),
    "pid": ("BIGINT", 1),
    "tid": ("BIGINT", 1),
    "rank": ("INTEGER", None),
    "step": ("BIGINT", None),
    "correlation": ("BIGINT", None),
    "args": ("JSON", None),
    "clock": ("VARCHAR", "epoch"),
}
METRICS = {
    "run": ("VARCHAR", "job"),
    "node": ("VARCHAR", "node0"),
    "hour": ("VARCHAR", "1970-01-01T00"),
    "ingest_id": ("BIGINT", 1),
    "seq": ("BIGINT", 0),
    "ts_ns": ("BIGINT", 0),
    "resource": ("VARCHAR", "gpu"),
    "device": ("VARCHAR", "gpu0"),
    "metric": ("VARCHAR", "GPUUtilization"),
    "value": ("DOUBLE", None),
    "unit": ("VARCHAR", "percent"),
    "rank": ("INTEGER", None),
    "clock": ("VARCHAR", "epoch"),
}
SOURCES = {
    "run": ("VARCHAR", "job"),
    "ingest_id": ("BIGINT", 1),
    "clock": ("VARCHAR", "epoch"),
    "first_ns": ("BIGINT", 0),
    "last_ns": ("BIGINT", 0),
}
Columns = Mapping[str, tuple[str, Any]]


def step(number: int, start: int, end: int | None, mode: str = "TRAIN", **more: Any) -> Any:
    """A row of events that marks a step."""
    name = f"Step:ModeKeys.{mode}"
    return {
        "name": name, "process_name": name, "step": number, "ts_ns": start, "end_ns": end, **more
    }  # fmt: skip


class SmallLake:
    """Rows of events, metrics and the ledger; ``ask`` gives the rows of a query."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._tables: dict[str, Columns] = {
            "events": EVENTS,
            "metrics": METRICS,
            "_live_sources": SOURCES,
        }
        for table, columns in self._tables.items():
            declared = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
            self._connection.execute(f"CREATE TABLE {table} ({declared})")
        for name in sql_files("functions", "training", "macros"):
            run_sql(self._connection, name)

    def fill(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace the rows of a table; a slice may give its start and end alone."""
        columns = self._tables[table]
        self._connection.execute(f"DELETE FROM {table}")
        for place, given in enumerate(rows):
            row = {"seq": place, **given}
            if "ts_ns" in given:
                start = datetime(1970, 1, 1) + timedelta(seconds=given["ts_ns"] // 10**9)
                row.setdefault("hour", start.strftime("%Y-%m-%dT%H"))
            if row.get("end_ns") is not None:
                row.setdefault("dur_ns", row["end_ns"] - row["ts_ns"])
            values = [row.get(name, default) for name, (_, default) in columns.items()]
            marks = ", ".join("?" for _ in values)
            self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)

    def ask(self, query: str, parameters: Any = None) -> list[Any]:
        """Rows of a query; of one column, its values."""
        rows = self._connection.execute(query, parameters).fetchall()
        return [row[0] for row in rows] if rows and len(rows[0]) == 1 else rows

    def close(self) -> None:
        self._connection.close()
