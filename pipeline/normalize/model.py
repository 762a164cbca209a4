"""What goes into the normalising of a batch, and what comes out beside the rows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Account", "FileSlot", "Partition"]


@dataclass(frozen=True)
class FileSlot:
    """A file's place in a batch: its number, its id in the lake and where its rows go."""

    file_no: int
    ingest_id: int
    run_key: str
    node_key: str
    format: str
    rank: int | None
    base_ns: int | None


@dataclass(frozen=True)
class Partition:
    """A file that rows of the batch go to: its partition, where ``hour_no`` counts hours since
    the epoch, and the segment of the batch whose rows it takes.
    """

    run_key: str
    node_key: str
    clock: str
    hour_no: int | None
    segment: int
    has_events: bool
    has_metrics: bool


@dataclass(frozen=True)
class Account:
    """What became of the events of one file; columns as in sql/normalize/account.sql."""

    file_no: int
    clock: str
    base_ns: int
    first_ns: int | None
    last_ns: int | None
    events_read: int
    events_by_phase: dict[str, int]
    event_rows: int
    metric_rows: int
    metadata_events: int
    counter_events: int
    paired_ends: int
    unfinished: int
    unmatched_ends: int
    rejected: int
    empty_events: int
