"""The ledger: one row an ingested file, and the only commit of a write.

A ledger file is put last, as a whole; before that nothing of its batch is visible. Rows are never
changed: a file that is read again gets a row with a higher ``version``, a compacted copy the same
version with another ``ingest_id``, and deleting a run is a row too. Which rows count is said by
``sql/views/_live_sources.sql``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.store.layout import LakePath
from pipeline.store.storage import put_file

__all__ = [
    "LEDGER_SCHEMA",
    "LedgerRow",
    "commit",
    "commit_table",
    "new_batch_id",
    "new_ingest_ids",
    "new_version",
]

_REJECT = pa.struct([("byte_offset", pa.int64()), ("reason", pa.string()), ("text", pa.string())])

LEDGER_SCHEMA = pa.schema(
    [
        ("action", pa.string()),
        ("ingest_id", pa.int64()),
        ("version", pa.int64()),
        ("run", pa.string()),
        ("node", pa.string()),
        ("run_key", pa.string()),
        ("node_key", pa.string()),
        ("rank", pa.int32()),
        ("uri", pa.string()),
        ("format", pa.string()),
        ("size_bytes", pa.int64()),
        ("fingerprint", pa.string()),
        ("batch_id", pa.string()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("clock", pa.string()),
        ("base_ns", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("events_read", pa.int64()),
        ("events_by_phase", pa.map_(pa.string(), pa.int64())),
        ("event_rows", pa.int64()),
        ("metric_rows", pa.int64()),
        ("metadata_events", pa.int64()),
        ("counter_events", pa.int64()),
        ("paired_ends", pa.int64()),
        ("unfinished", pa.int64()),
        ("unmatched_ends", pa.int64()),
        ("rejected", pa.int64()),
        ("empty_events", pa.int64()),
        ("truncated", pa.bool_()),
        ("repairs", pa.list_(pa.string())),
        ("rejects", pa.list_(_REJECT)),
        ("metadata", pa.string()),
        ("error", pa.string()),
    ]
)
"""Columns of a ledger file; sql/views/sources.sql says what each means."""


@dataclass(frozen=True)
class LedgerRow:
    """One row of the ledger; fields as in ``LEDGER_SCHEMA``."""

    action: str
    ingest_id: int
    version: int
    run: str
    batch_id: str
    run_key: str
    node: str | None = None
    node_key: str | None = None
    rank: int | None = None
    uri: str | None = None
    format: str | None = None
    size_bytes: int | None = None
    fingerprint: str | None = None
    clock: str | None = None
    base_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    events_read: int = 0
    events_by_phase: dict[str, int] = field(default_factory=dict)
    event_rows: int = 0
    metric_rows: int = 0
    metadata_events: int = 0
    counter_events: int = 0
    paired_ends: int = 0
    unfinished: int = 0
    unmatched_ends: int = 0
    rejected: int = 0
    empty_events: int = 0
    truncated: bool = False
    repairs: tuple[str, ...] = ()
    rejects: tuple[dict[str, Any], ...] = ()
    metadata: str | None = None
    error: str | None = None


def new_batch_id() -> str:
    """A name for the files of a batch: sorts by time, and no two writers have the same."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(6)}"


def new_ingest_ids(count: int) -> range:
    """``count`` ids that no other writer has."""
    first = secrets.randbits(62)
    return range(first, first + count)


def new_version(latest: int) -> int:
    """A version above ``latest``, the highest in the ledger, whatever the clock here says."""
    return max(time.time_ns() // 1000, latest + 1)


def commit(lake: LakePath, batch_id: str, rows: Iterable[LedgerRow]) -> None:
    """Put the rows into the ledger: all of them become visible at once."""
    now = datetime.now(UTC)
    values = []
    for row in rows:
        value = asdict(row)
        value["committed_at"] = now
        value["events_by_phase"] = list(row.events_by_phase.items())
        values.append(value)
    commit_table(lake, batch_id, pa.Table.from_pylist(values, LEDGER_SCHEMA))


def commit_table(lake: LakePath, batch_id: str, table: pa.Table) -> None:
    """Put a table of ledger rows: the commit itself."""
    put_file(
        lake,
        f"sources/{batch_id}.parquet",
        lambda path: pq.write_table(table, path, compression="zstd"),
    )
