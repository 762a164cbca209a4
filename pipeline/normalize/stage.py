"""Events that stand for themselves, kept on disk until the batch is written.

They make up nearly all of a large trace. In a table of the database they would spill, which
compresses and decompresses all of them; as plain Arrow files they cost one write and one read.
A batch is divided into segments of so many events in the order of the documents, and a segment is
what is in memory at once when the rows are sorted and written.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
from numpy.typing import NDArray

from pipeline.split.lines import FIELDS

__all__ = ["SEGMENT_EVENTS", "STAGED", "Stage"]

SEGMENT_EVENTS = 250_000
STAGED = pa.schema(
    [
        *(column for column in FIELDS if column.name != "byte_offset"),
        ("step_num", pa.int64()),
        ("batch", pa.int64()),
        ("device", pa.int32()),
        ("stream", pa.int64()),
        ("correlation", pa.int64()),
        ("external_id", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
"""Columns of a staged event, as in sql/normalize/tables.sql; none of them is odd or rejected."""


class Stage:
    """The staged events of a batch, in Arrow files of ``STAGED`` in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[int, list[Path]] = {}
        self._forgotten: set[int] = set()
        self._open: tuple[int, ipc.RecordBatchFileWriter] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="stage")
        self._fetched: tuple[int, Future[pa.Table]] | None = None

    def append(self, events: pa.Table, places: NDArray[np.int64]) -> None:
        """Keep events; ``places`` are their numbers in the batch."""
        events = events.select(STAGED.names).cast(STAGED)
        segments = places // SEGMENT_EVENTS
        for segment in np.unique(segments).tolist():
            part = segments == segment
            chosen = events if part.all() else events.filter(pa.array(part))
            self._writer(segment).write_table(chosen)

    def _writer(self, segment: int) -> ipc.RecordBatchFileWriter:
        if self._open is None or self._open[0] != segment:
            self._close()
            paths = self._paths.setdefault(segment, [])
            paths.append(self._folder / f"{segment}_{len(paths)}.arrow")
            self._open = segment, ipc.new_file(paths[-1], STAGED)
        return self._open[1]

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None

    def forget(self, file_no: int) -> None:
        """Leave out the events of a file."""
        self._forgotten.add(file_no)

    def segments(self) -> range:
        """The numbers of all segments up to the last that has an event."""
        return range(max(self._paths, default=-1) + 1)

    def prefetch(self, number: int) -> None:
        """Begin to read a segment, for the call of ``segment`` that comes next."""
        if number in self._paths:
            self._close()
            self._fetched = number, self._pool.submit(self._read, number)

    def segment(self, number: int) -> pa.Table:
        """The events of a segment, in no certain order."""
        self._close()
        fetched, self._fetched = self._fetched, None
        if fetched is not None and fetched[0] == number:
            return fetched[1].result()
        return self._read(number)

    def _read(self, number: int) -> pa.Table:
        tables = [STAGED.empty_table()]
        for path in self._paths.get(number, ()):
            with pa.OSFile(str(path)) as file, ipc.open_file(file) as reader:
                tables.append(reader.read_all())
        events = pa.concat_tables(tables)
        if self._forgotten:
            forgotten = pa.array(self._forgotten, pa.int32())
            events = events.filter(pc.invert(pc.is_in(events["file_no"], forgotten)))
        return events

    def close(self) -> None:
        """Close what is open."""
        self._pool.shutdown(cancel_futures=True)
        self._close()
