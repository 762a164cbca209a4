"""The database of one ingest batch: documents are read into it one after the other, then all that
needs the whole of them (names, pairs, clocks, counts) is computed at once, and the writer takes
the finished rows from it. It is in memory and spills to disk.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import duckdb

from pipeline.normalize.model import Account, FileSlot, Partition
from pipeline.normalize.reader import Reader
from pipeline.normalize.stage import SEGMENT_EVENTS, STAGED, Stage
from pipeline.split import DocumentSplitter, Reject
from pipeline.sqlfiles import PARQUET, run_sql, sql_files, sql_text

__all__ = ["Workspace"]

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_HOUR = 3_600_000_000_000
# A base beyond these could take a staged event out of the range of BIGINT.
_LARGEST_BASE = 4_000_000_000_000_000_000


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
                # Nothing here outlives the batch; a checkpoint would only copy all of it.
                "checkpoint_threshold": "1TB",
            }
        )
        self._stage = Stage(Path(spill_folder))
        self._reader = Reader(self.connection, self._stage, threads)
        run_sql(self.connection, "normalize/tables")
        for name in ("ids", "kinds", "json_fields"):
            run_sql(self.connection, f"normalize/{name}")
        for name in sql_files("normalize/formats"):
            run_sql(self.connection, name)
        self.connection.register("staged", STAGED.empty_table())

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._stage.close()
        self.connection.close()

    # -- reading ---------------------------------------------------------------------------

    def read(self, splitter: DocumentSplitter, file_no: int, is_samples: bool) -> None:
        """Read a whole document: trace events, or samples of metrics. Files come in order of
        their number.
        """
        self._reader.read(splitter, file_no, is_samples)

    def forget(self, file_no: int) -> None:
        """Take out all that was read of a file."""
        self._reader.forget(file_no)

    @property
    def rejects(self) -> Mapping[int, Sequence[Reject]]:
        """The first rejected events of each file, with their text."""
        return MappingProxyType(self._reader.rejects)

    def mended(self, file_no: int) -> int:
        """How many events of a file were read only after a repair of their text."""
        return self._reader.mended[file_no]

    # -- finishing -------------------------------------------------------------------------

    def finish(self, files: list[FileSlot]) -> list[Account]:
        """Compute what needs whole documents; returns the account of each file, in order."""
        self._reader.flush()
        for f in files:
            place = {"first_place": self._reader.first_place(f.file_no)}
            run_sql(self.connection, "normalize/add_file", asdict(f) | place)
        run_sql(self.connection, "normalize/clock_base")
        self._unstage_far_files()
        run_sql(self.connection, "normalize/out_of_range")
        run_sql(self.connection, "normalize/pairs")
        while self._ends_left():
            run_sql(self.connection, "normalize/pairs_step")
        run_sql(self.connection, "normalize/names")
        run_sql(self.connection, "normalize/metrics")
        rows = run_sql(self.connection, "normalize/account").fetchall()
        return [Account(*row) for row in rows]

    def _unstage_far_files(self) -> None:
        """Look again at the events of files whose clock has an absurd base."""
        bases = "SELECT file_no FROM files WHERE base_ns NOT BETWEEN ? AND ?"
        limits = [-_LARGEST_BASE, _LARGEST_BASE]
        for (file_no,) in self.connection.execute(bases, limits).fetchall():
            for segment in self._stage.segments():
                self._show(segment)
                run_sql(self.connection, "normalize/unstage", {"file_no": file_no})
            self._stage.forget(file_no)
            self.connection.execute("DELETE FROM tally WHERE file_no = ?", [file_no])

    def _show(self, segment: int) -> None:
        """Make ``staged`` the staged events of a segment."""
        self.connection.register("staged", self._stage.segment(segment))

    def _ends_left(self) -> bool:
        query = "SELECT count(*) FROM open_marks WHERE NOT is_begin"
        return bool(self.connection.execute(query).fetchall()[0][0])

    def partitions(self) -> Iterator[Partition]:
        """The files that the rows of the batch go to, in order. Each must be written before the
        next is taken.
        """
        for segment in range(-(-self._reader.first_places[-1] // SEGMENT_EVENTS)):
            self._show(segment)
            self._stage.prefetch(segment + 1)
            rows = run_sql(self.connection, "normalize/partitions", self._bounds(segment))
            for run_key, node_key, clock, hour_no, has_events, has_metrics in rows.fetchall():
                yield Partition(
                    run_key, node_key, clock, hour_no, segment, has_events, has_metrics
                )

    def copy_rows(self, table: str, partition: Partition, path: str) -> None:
        """Write one file of ``events`` or ``metrics`` as Parquet."""
        from_ns, last_ns = _LOWEST, _HIGHEST
        if partition.hour_no is not None:
            from_ns = max(partition.hour_no * _HOUR, _LOWEST)
            last_ns = min(partition.hour_no * _HOUR + _HOUR - 1, _HIGHEST)
        query = sql_text("normalize/events" if table == "events" else "normalize/metric_rows")
        self.connection.execute(
            f"COPY ({query}) TO $path ({PARQUET})",
            {
                "path": path,
                "run_key": partition.run_key,
                "node_key": partition.node_key,
                "clock": partition.clock,
                "from_ns": from_ns,
                "last_ns": last_ns,
                **self._bounds(partition.segment),
            },
        )

    def _bounds(self, segment: int) -> dict[str, int]:
        """Where the events of a segment stand: by place, by file and, in one file, by ordinal."""
        place, until_place = segment * SEGMENT_EVENTS, (segment + 1) * SEGMENT_EVENTS
        starts = self._reader.first_places[:-1] or [0]
        first_file = max(bisect_right(starts, place) - 1, 0)
        last_file = max(bisect_left(starts, until_place) - 1, first_file)
        alone = first_file == last_file
        return {
            "first_place": place,
            "until_place": until_place,
            "first_file": first_file,
            "last_file": last_file,
            "first_seq": place - starts[first_file] if alone else 0,
            "until_seq": until_place - starts[first_file] if alone else _HIGHEST,
        }
