"""Writes everything of a run in a range of time as one Chrome trace.

The viewers of Chrome and Perfetto open it. Each line is made by SQL; slices of time, each small
enough to be sorted in memory, follow each other into the file.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import QueryError, storage_error
from pipeline.sqlfiles import run_sql, sql_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from pipeline.store.lake import Store

__all__ = ["Timeline", "write_timeline"]

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_SLICE_LINES = 500_000
_FIRST, _LAST = -(2**63) + 1, 2**63 - 1


@dataclass(frozen=True)
class Timeline:
    """What of a run goes into a timeline.

    ``start`` and ``until`` are nanoseconds, both included, None for no bound; ``clock`` is epoch
    or trace; ``uris`` are endings of the names of files, None for all; ``metrics`` makes samples
    counters; below ``low_gpu`` percent the use of a GPU is marked, None marks nothing.
    """

    run: str
    start: int | None
    until: int | None
    clock: str
    uris: list[str] | None
    metrics: bool
    low_gpu: float | None

    def parameters(self, *names: str) -> dict[str, Any]:
        """The values for the parameters of an SQL file."""
        values = asdict(self)
        values["from"] = values.pop("start")
        return {name: values[name] for name in ("run", "from", "until", "clock", *names)}


def write_timeline(store: Store, timeline: Timeline, out: str | os.PathLike[str]) -> Path:
    """Write a timeline to a file; it appears as a whole or not at all.

    A name that ends in ``.gz`` or ``.zst`` is compressed. Raises ``StorageError`` where the disk
    refuses.
    """
    import duckdb

    target = Path(out)
    try:
        # Beside the target, so that the last step is a rename.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tracelake-") as folder:
            partial = Path(folder) / f"timeline{target.suffix}"
            store.reading(lambda: _write(store, timeline, partial))
            partial.replace(target)
    except (OSError, duckdb.IOException) as error:
        raise storage_error(error, f"write {target}") from error
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from error
    return target


def _write(store: Store, timeline: Timeline, path: Path) -> None:
    import pyarrow as pa

    # A cursor has temporary tables of its own, and sees the same state of the lake throughout.
    with (
        store.connection.cursor() as cursor,
        pa.output_stream(str(path), compression=_COMPRESSIONS.get(path.suffix)) as file,
    ):
        run_sql(cursor, "timeline/sources", timeline.parameters("uris"))
        run_sql(cursor, "timeline/rows")
        run_sql(cursor, "timeline/processes", timeline.parameters("metrics", "low_gpu"))
        run_sql(cursor, "timeline/threads", timeline.parameters())
        given = timeline.parameters("metrics", "low_gpu")
        ((base,),) = run_sql(cursor, "timeline/base", given).fetchall()
        _put_lines(cursor.sql(sql_text("timeline/header"), params={"base": base}), file)
        for first, last in pairwise([_FIRST, *_cuts(cursor, timeline), _LAST]):
            chosen = timeline.parameters("metrics", "low_gpu")
            bounds = {**chosen, "base": base, "first": first, "last": last}
            _put_lines(cursor.sql(sql_text("timeline/slice"), params=bounds), file)
        file.write(b"]\n")


def _cuts(cursor: duckdb.DuckDBPyConnection, timeline: Timeline) -> list[int]:
    """Where one slice ends and the next begins."""
    values = {**timeline.parameters("metrics"), "rows": _SLICE_LINES}
    ((cuts,),) = run_sql(cursor, "timeline/slices", values).fetchall()
    return cuts or []


def _put_lines(rows: duckdb.DuckDBPyRelation, file: pa.NativeFile) -> None:
    """Write the texts of a result as they lie in memory, one behind the other."""
    import pyarrow as pa

    for batch in rows.to_arrow_reader():
        lines = batch.column(0).cast(pa.large_string())
        if len(lines):
            offsets = pa.Array.from_buffers(
                pa.int64(), len(lines) + 1, [None, lines.buffers()[1]], offset=lines.offset
            )
            start, stop = offsets[0].as_py(), offsets[len(lines)].as_py()
            file.write(lines.buffers()[2].slice(start, stop - start))
