"""Turns the lines of trace documents into the rows of the tables, by running sql/normalize.

A ``Workspace`` is the DuckDB database of one batch: documents are read into it one after the
other, then everything that needs the whole of them (names, pairs, clocks, counts) is computed at
once, and the writer takes the finished rows from it. It is in memory and spills to disk.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.split import KEEP_REJECTS, Block, DocumentSplitter, Reject
from pipeline.split.document import shown
from pipeline.split.lines import SCHEMA
from pipeline.split.repair import repair
from pipeline.sqlfiles import run_sql, sql_files, sql_text

__all__ = ["Account", "FileSlot", "Partition", "Workspace"]

_FLUSH_BYTES = 8 << 20
_BLOCKS_AT_ONCE = 8
_SEGMENT_EVENTS = 750_000


@dataclass(frozen=True)
class FileSlot:
    """A file's place in a batch: its number, its id in the lake and where its rows go.

    ``events`` is how many events were found in it.
    """

    file_no: int
    ingest_id: int
    run_key: str
    node_key: str
    format: str
    rank: int | None
    base_ns: int | None
    events: int


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


@dataclass(frozen=True)
class _Place:
    """An event in a document: its ordinal and where it begins."""

    seq: int
    byte_offset: int


@dataclass
class _Pending:
    """Exactly scanned lines that wait to be read together: many small files make one query."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    blocks: dict[int, list[Block]] = field(default_factory=dict)
    bytes: int = 0


class Workspace:
    """The database of one ingest batch. A context manager.

    ``memory_limit`` is DuckDB's (text, as in ``"400MB"``), ``spill_folder`` where it may spill.
    """

    def __init__(self, memory_limit: str, threads: int, spill_folder: str) -> None:
        self.connection = duckdb.connect(
            config={
                "memory_limit": memory_limit,
                "threads": threads,
                "temp_directory": spill_folder,
                "preserve_insertion_order": False,
                # Nothing here outlives the batch; a checkpoint would only copy all of it.
                "checkpoint_threshold": "1TB",
            }
        )
        self.rejects: dict[int, list[Reject]] = {}
        self._places = [0]  # the place in the batch that each file begins at, and the end
        self._pending = {True: _Pending(), False: _Pending()}  # by whether they are samples
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="split")
        run_sql(self.connection, "normalize/tables")
        for name in ("ids", "kinds", "json_fields"):
            run_sql(self.connection, f"normalize/{name}")
        for name in sql_files("normalize/formats"):
            run_sql(self.connection, name)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self._ahead.shutdown(wait=True, cancel_futures=True)
        self.connection.close()

    # -- reading ---------------------------------------------------------------------------

    def read(self, splitter: DocumentSplitter, file_no: int, is_samples: bool) -> None:
        """Read a whole document: trace events, or samples of system metrics."""
        following = self._ahead.submit(_next_blocks, splitter)
        while blocks := following.result():
            # The next blocks are cut while DuckDB reads these.
            following = self._ahead.submit(_next_blocks, splitter)
            quick = [block for block in blocks if block.quick]
            bad = self._read_quick(quick, file_no, is_samples)
            if bad is not None:
                at = sum(block.first_seq <= bad.seq for block in quick) - 1
                for block in quick[:at]:
                    splitter.accepted(block)
                splitter.rewind(blocks[at:] + following.result(), bad.seq, bad.byte_offset)
                following = self._ahead.submit(_next_blocks, splitter)
                continue
            for block in blocks:
                splitter.accepted(block)
                if not block.quick:
                    self._add(block, file_no, is_samples)
        splitter.finish()

    def _add(self, block: Block, file_no: int, is_samples: bool) -> None:
        pending = self._pending[is_samples]
        pending.blocks.setdefault(file_no, []).append(block)
        pending.batches += [_of_file(batch, file_no) for batch in block.batches]
        pending.bytes += len(block.source)
        if pending.bytes >= _FLUSH_BYTES:
            self._flush(is_samples)

    def _read_quick(self, blocks: list[Block], file_no: int, is_samples: bool) -> _Place | None:
        """Read blocks that were cut by pattern, up to the first event that is not right; returns
        the place of that one.
        """
        batches = [_of_file(batch, file_no) for block in blocks for batch in block.batches]
        if not batches:
            return None
        # A transaction, so that nothing of a wrong cut stays.
        self.connection.begin()
        self._insert(batches, True, is_samples)
        (bad,) = self.connection.execute(
            f"SELECT min(seq) FROM {_table(is_samples)} WHERE file_no = ? AND seq >= ?"
            " AND (status IS NOT NULL OR reject IS NOT NULL)",
            [file_no, blocks[0].first_seq],
        ).fetchall()[0]
        if bad is None:
            self.connection.commit()
            return None
        self.connection.rollback()
        right: list[pa.RecordBatch] = []
        left = bad - blocks[0].first_seq
        for batch in batches:
            if left < batch.num_rows:
                break
            right.append(batch)
            left -= batch.num_rows
        self._insert([*right, batch.slice(0, left)], True, is_samples)
        return _Place(bad, batch["byte_offset"][left].as_py())

    def _flush(self, is_samples: bool) -> None:
        """Read the lines that wait, mend those that need it, and keep the text of the rejected."""
        pending, self._pending[is_samples] = self._pending[is_samples], _Pending()
        if not pending.batches:
            return
        self._insert(pending.batches, False, is_samples)
        fresh = _fresh_rows(pending, _table(is_samples))
        broken = self.connection.execute(
            f"SELECT file_no, seq {fresh} AND status IN ('broken', 'twice')"
        ).fetchall()
        if broken:
            self._mend(broken, pending, is_samples)
        rejected = self.connection.execute(
            f"SELECT file_no, seq, reject {fresh} AND reject IS NOT NULL ORDER BY file_no, seq"
        )
        while rows := rejected.fetchmany(KEEP_REJECTS):
            for file_no, seq, reason in rows:
                kept = self.rejects.setdefault(file_no, [])
                if len(kept) < KEEP_REJECTS:
                    offset, text = _text(pending.blocks[file_no], seq)
                    kept.append(Reject(offset, _explain(reason, text), shown(text)))

    def _mend(self, broken: list[tuple[int, int]], pending: _Pending, is_samples: bool) -> None:
        """Read the broken lines again, repaired; what is still broken is rejected."""
        places = [_text(pending.blocks[file_no], seq) for file_no, seq in broken]
        mended = pa.record_batch(
            [
                pa.array([file_no for file_no, _ in broken], pa.int32()),
                pa.array([seq for _, seq in broken], pa.int64()),
                pa.array([offset for offset, _ in places], pa.int64()),
                pa.array([repair(text) for _, text in places], pa.string_view()),
                pa.nulls(len(broken), pa.string_view()),
            ],
            schema=SCHEMA,
        )
        table = _table(is_samples)
        fresh = _fresh_rows(pending, table)
        self.connection.execute(f"DELETE {fresh} AND status IN ('broken', 'twice')")
        self._insert([mended], False, is_samples)
        update = f"UPDATE {table} SET reject = 'not valid JSON', status = NULL"
        where = fresh.removeprefix(f"FROM {table}")
        self.connection.execute(f"{update} {where} AND status IN ('broken', 'twice')")

    def _insert(self, batches: list[pa.RecordBatch], is_quick: bool, is_samples: bool) -> None:
        name = "normalize/parse_samples" if is_samples else "normalize/parse_events"
        self.connection.register("lines", pa.Table.from_batches(batches, SCHEMA))
        try:
            run_sql(self.connection, name, {"quick": is_quick})
        finally:
            self.connection.unregister("lines")

    def forget(self, file_no: int) -> None:
        """Take out all that was read of a file."""
        self._flush(False)
        self._flush(True)
        self.rejects.pop(file_no, None)
        for table in ("parsed", "samples"):
            self.connection.execute(f"DELETE FROM {table} WHERE file_no = ?", [file_no])

    # -- finishing -------------------------------------------------------------------------

    def finish(self, files: list[FileSlot]) -> list[Account]:
        """Compute what needs whole documents; returns the account of each file, in order."""
        self._flush(False)
        self._flush(True)
        for f in files:
            place = self._places[-1]
            self.connection.execute(
                "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
                [
                    f.file_no,
                    f.ingest_id,
                    f.run_key,
                    f.node_key,
                    f.format,
                    f.rank,
                    f.base_ns,
                    place,
                ],
            )
            self._places.append(place + f.events)
        run_sql(self.connection, "normalize/clock_base")
        run_sql(self.connection, "normalize/pairs")
        while self._ends_left():
            run_sql(self.connection, "normalize/pairs_step")
        run_sql(self.connection, "normalize/names")
        run_sql(self.connection, "normalize/metrics")
        rows = run_sql(self.connection, "normalize/account").fetchall()
        return [Account(*row) for row in rows]

    def _ends_left(self) -> bool:
        query = "SELECT count(*) FROM open_marks WHERE NOT is_begin"
        return bool(self.connection.execute(query).fetchall()[0][0])

    def partitions(self) -> list[Partition]:
        """The files that the rows of the batch go to, in order."""
        parameters = {"segment_events": _SEGMENT_EVENTS}
        rows = run_sql(self.connection, "normalize/partitions", parameters).fetchall()
        return [Partition(*row) for row in rows]

    def copy_rows(self, table: str, partition: Partition, path: str) -> None:
        """Write one file of ``events`` or ``metrics`` as Parquet."""
        first = lowest = -(2**63)
        highest = 2**63 - 1
        until = 2**63
        if partition.hour_no is not None:
            first, until = (hour * 3_600_000_000_000 for hour in _bounds(partition.hour_no))
        place, until_place = (n * _SEGMENT_EVENTS for n in _bounds(partition.segment))
        starts = self._places[:-1]
        first_file = max(bisect_right(starts, place) - 1, 0)
        last_file = max(bisect_left(starts, until_place) - 1, first_file)
        alone = first_file == last_file and starts
        query = sql_text("normalize/events" if table == "events" else "normalize/metric_rows")
        self.connection.execute(
            f"COPY ({query}) TO $path (FORMAT parquet, COMPRESSION zstd)",
            {
                "path": path,
                "run_key": partition.run_key,
                "node_key": partition.node_key,
                "clock": partition.clock,
                "from_ns": max(first, lowest),
                "last_ns": min(until - 1, highest),
                "first_place": place,
                "until_place": until_place,
                "first_file": first_file,
                "last_file": last_file,
                "first_seq": place - starts[first_file] if alone else 0,
                "until_seq": until_place - starts[first_file] if alone else highest,
            },
        )


def _bounds(number: int) -> tuple[int, int]:
    """A number and the next: the bounds, half open, of the hour or segment of that number."""
    return number, number + 1


def _next_blocks(splitter: DocumentSplitter) -> list[Block]:
    """The next quick blocks, enough to keep DuckDB's threads busy, up to one that is not quick."""
    blocks: list[Block] = []
    while len(blocks) < _BLOCKS_AT_ONCE and (block := splitter.next_block()) is not None:
        blocks.append(block)
        if not block.quick:
            break
    return blocks


def _table(is_samples: bool) -> str:
    return "samples" if is_samples else "parsed"


def _fresh_rows(pending: _Pending, table: str) -> str:
    """``FROM ... WHERE`` for the rows that were just read, in a form that prunes by zone maps."""
    files = sorted(pending.blocks)
    seq = pending.blocks[files[0]][0].first_seq if len(files) == 1 else 0
    return f"FROM {table} WHERE file_no BETWEEN {files[0]} AND {files[-1]} AND seq >= {seq}"


def _of_file(batch: pa.RecordBatch, file_no: int) -> pa.RecordBatch:
    numbers = pa.repeat(pa.scalar(file_no, pa.int32()), batch.num_rows)
    return pa.record_batch([numbers, *batch.columns[1:]], schema=SCHEMA)


def _text(blocks: list[Block], seq: int) -> tuple[int, bytes]:
    block = next(block for block in reversed(blocks) if block.first_seq <= seq)
    return block.text(seq)


def _explain(reason: str, text: bytes) -> str:
    """The reason of a reject; where it is bad JSON, what is bad about it."""
    if reason != "not valid JSON":
        return reason
    decode: Callable[..., Any] = json.loads
    try:
        decode(repair(text))
    except (ValueError, RecursionError) as error:
        return f"{reason}: {error}"
    return reason
