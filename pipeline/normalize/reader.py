"""Reads documents into the database of a batch: parses their lines, repairs what is broken, and
keeps the text of what is rejected.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.normalize.stage import Stage
from pipeline.split import KEEP_REJECTS, Block, DocumentSplitter, Reject
from pipeline.split.lines import FIELDS, SCHEMA, numbered
from pipeline.split.model import shown
from pipeline.split.repair import repair
from pipeline.sqlfiles import run_sql, sql_text

__all__ = ["Reader"]

_FLUSH_BYTES = 8 << 20
_BLOCKS_AT_ONCE = 8
_LINES_AT_ONCE = 4096
_BROKEN = pa.array(["broken", "twice"])


@dataclass
class _Pending:
    """Exactly scanned lines that wait to be read together: many small files make one query."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    blocks: dict[int, list[Block]] = field(default_factory=dict)
    bytes: int = 0


class Reader:
    """Reads documents one after the other. ``first_places`` are the places in the batch that the
    first events of the files have, by file number, and at last that of the next file.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, stage: Stage, threads: int) -> None:
        self.rejects: dict[int, list[Reject]] = {}
        self.mended: Counter[int] = Counter()
        self.first_places = [0]
        self._connection = connection
        self._stage = stage
        self._pending = {True: _Pending(), False: _Pending()}  # by whether they are samples
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="split")
        self._cutters = ThreadPoolExecutor(threads, thread_name_prefix="cut")

    def first_place(self, file_no: int) -> int:
        """The place in the batch of a file's first event, had it any."""
        return self.first_places[min(file_no, len(self.first_places) - 1)]

    def close(self) -> None:
        """End the threads that split ahead."""
        self._ahead.shutdown(wait=True, cancel_futures=True)
        self._cutters.shutdown()

    def read(self, splitter: DocumentSplitter, file_no: int, is_samples: bool) -> None:
        """Read a whole document: trace events, or samples of metrics. Files come in order of
        their number; those left out have no events.
        """
        missing = file_no + 1 - len(self.first_places)
        self.first_places += [self.first_places[-1]] * missing
        try:
            self._read(splitter, file_no, is_samples)
        finally:
            self.first_places.append(self.first_places[-1] + splitter.events_found)

    def _read(self, splitter: DocumentSplitter, file_no: int, is_samples: bool) -> None:
        following = self._split_ahead(splitter)
        while blocks := following.result():
            # The next blocks are cut while DuckDB reads these.
            following = self._split_ahead(splitter)
            quick = [block for block in blocks if block.quick]
            bad = self._read_quick(quick, file_no, is_samples)
            if bad is not None:
                at = sum(block.first_seq <= bad for block in quick) - 1
                for block in quick[:at]:
                    splitter.accepted(block)
                splitter.rewind(blocks[at:] + following.result(), bad)
                following = self._split_ahead(splitter)
                continue
            for block in blocks:
                splitter.accepted(block)
                if not block.quick:
                    self._add(block, file_no, is_samples)
        splitter.finish()

    def _split_ahead(self, splitter: DocumentSplitter) -> Future[list[Block]]:
        return self._ahead.submit(splitter.next_blocks, _BLOCKS_AT_ONCE, self._cutters)

    def _add(self, block: Block, file_no: int, is_samples: bool) -> None:
        pending = self._pending[is_samples]
        pending.blocks.setdefault(file_no, []).append(block)
        pending.batches += [numbered(batch, file_no) for batch in block.lines]
        pending.bytes += block.size
        if pending.bytes >= _FLUSH_BYTES:
            self._flush(is_samples)

    def _read_quick(self, blocks: list[Block], file_no: int, is_samples: bool) -> int | None:
        """Read blocks that were cut by pattern, up to the first event that is not right; returns
        the ordinal of that one.
        """
        lines = [numbered(batch, file_no) for block in blocks for batch in block.lines]
        lines = [batch for batch in lines if batch.num_rows]
        fields = [numbered(block.fields, file_no) for block in blocks if block.fields]
        parsed: list[pa.Table] = []
        if lines:
            parsed.append(self._parse(_parts(lines), True, is_samples))
        if any(batch.num_rows for batch in fields):
            parsed.append(self._parse_arguments(_parts(fields)))
        wrong = [seq for rows in parsed if (seq := _first_wrong(rows)) is not None]
        bad = min(wrong, default=None)
        for rows in parsed:
            self._keep(rows if bad is None else rows.filter(pc.less(rows["seq"], bad)), is_samples)
        return bad

    def flush(self) -> None:
        """Read all lines that wait."""
        self._flush(False)
        self._flush(True)

    def _flush(self, is_samples: bool) -> None:
        """Read the lines that wait, mend those that need it, and keep the text of the rejected."""
        pending, self._pending[is_samples] = self._pending[is_samples], _Pending()
        if not pending.batches:
            return
        rows = self._parse(_parts(pending.batches), False, is_samples)
        is_broken = pc.is_in(rows["status"], _BROKEN)
        if pc.any(is_broken).as_py():
            mended = self._mend(rows.filter(is_broken), pending.blocks, is_samples)
            rows = pa.concat_tables([rows.filter(pc.invert(is_broken)), mended])
        rejected = rows.filter(pc.is_valid(rows["reject"])).select(["file_no", "seq", "reject"])
        for row in rejected.sort_by([("file_no", "ascending"), ("seq", "ascending")]).to_pylist():
            kept = self.rejects.setdefault(row["file_no"], [])
            if len(kept) < KEEP_REJECTS:
                offset, text = _text(pending.blocks[row["file_no"]], row["seq"])
                kept.append(Reject(offset, _explain(row["reject"], text), shown(text)))
        self._keep(rows, is_samples)

    def _mend(
        self, broken: pa.Table, blocks: dict[int, list[Block]], is_samples: bool
    ) -> pa.Table:
        """Read broken lines again, repaired; what is still broken is rejected."""
        file_nos, seqs = broken["file_no"].to_pylist(), broken["seq"].to_pylist()
        places = [_text(blocks[no], seq) for no, seq in zip(file_nos, seqs, strict=True)]
        repaired = pa.record_batch(
            [
                pa.array(file_nos, pa.int32()),
                pa.array(seqs, pa.int64()),
                pa.array([offset for offset, _ in places], pa.int64()),
                pa.array([repair(text) for _, text in places], pa.string_view()),
                pa.nulls(len(places), pa.string_view()),
            ],
            schema=SCHEMA,
        )
        rows = self._parse([repaired], False, is_samples)
        is_broken = pc.is_in(rows["status"], _BROKEN)
        for name, value in (("reject", "not valid JSON"), ("status", None)):
            given = pc.if_else(is_broken, pa.scalar(value, pa.string()), rows[name])
            rows = rows.set_column(rows.schema.get_field_index(name), name, given)
        self.mended.update(rows["file_no"].filter(pc.invert(is_broken)).to_pylist())
        return rows

    def _parse(self, batches: list[pa.RecordBatch], is_quick: bool, is_samples: bool) -> pa.Table:
        name = "normalize/parse_samples" if is_samples else "normalize/parse_events"
        self._connection.register("lines", pa.Table.from_batches(batches, SCHEMA))
        try:
            query = self._connection.sql(sql_text(name), params={"quick": is_quick})
            return query.to_arrow_table()
        finally:
            self._connection.unregister("lines")

    def _parse_arguments(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """The fields with what is in their ``args``."""
        fields = pa.Table.from_batches(batches, FIELDS)
        self._connection.register("fields", fields)
        try:
            query = self._connection.sql(sql_text("normalize/parse_arguments"))
            arguments = query.to_arrow_table()
        finally:
            self._connection.unregister("fields")
        names = [*fields.column_names, *arguments.column_names]
        return pa.Table.from_arrays([*fields.columns, *arguments.columns], names)

    def _keep(self, rows: pa.Table, is_samples: bool) -> None:
        """Put parsed rows where they belong: events that stand for themselves on the stage, the
        rest into the database.
        """
        if is_samples:
            self._insert("normalize/keep_samples", rows)
            return
        plain = pc.sum(rows["is_plain"]).as_py() or 0
        staged = rows
        if plain < rows.num_rows:
            staged = rows.filter(rows["is_plain"])
            self._insert("normalize/keep_events", rows.filter(pc.invert(rows["is_plain"])))
        if plain:
            self._insert("normalize/tally", staged)
            firsts = np.array(self.first_places)[staged["file_no"].to_numpy()]
            self._stage.append(staged, firsts + staged["seq"].to_numpy())

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._connection.register("rows", rows)
        try:
            run_sql(self._connection, name)
        finally:
            self._connection.unregister("rows")

    def forget(self, file_no: int) -> None:
        """Take out all that was read of a file."""
        self.flush()
        self.rejects.pop(file_no, None)
        self.mended.pop(file_no, None)
        self._stage.forget(file_no)
        for table in ("parsed", "samples", "tally"):
            self._connection.execute(f"DELETE FROM {table} WHERE file_no = ?", [file_no])


def _parts(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in batches that DuckDB's threads can share."""
    return [
        batch.slice(at, _LINES_AT_ONCE)
        for batch in batches
        for at in range(0, batch.num_rows, _LINES_AT_ONCE)
    ]


def _first_wrong(rows: pa.Table) -> int | None:
    """The ordinal of the first row that did not parse or is rejected."""
    if rows["status"].null_count == rows["reject"].null_count == rows.num_rows:
        return None
    wrong = pc.or_(pc.is_valid(rows["status"]), pc.is_valid(rows["reject"]))
    first: int | None = pc.min(rows["seq"].filter(wrong)).as_py()
    return first


def _text(blocks: list[Block], seq: int) -> tuple[int, bytes]:
    block = next(block for block in reversed(blocks) if block.first_seq <= seq)
    return block.text_of(seq)


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
