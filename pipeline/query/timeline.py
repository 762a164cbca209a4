"""Writes everything of a run in a range of time as one Chrome trace.

The viewers of Chrome and Perfetto open it. All of it is one streaming query; DuckDB sorts on disk
what does not fit into memory.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import storage_error
from pipeline.sqlfiles import sql_text

if TYPE_CHECKING:
    from pipeline.query.run import Question
    from pipeline.store.lake import Store

__all__ = ["TIMELINE", "write_timeline"]

TIMELINE = "queries/timeline_json"
"""The query whose lines are the trace."""

# Lines go out as they are: nothing is quoted, and a line has but one column to delimit.
_LINES = "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x1f', COMPRESSION {how})"
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def write_timeline(store: Store, question: Question, out: str | os.PathLike[str]) -> Path:
    """Write the lines of a timeline to a file; it appears as a whole or not at all.

    A name that ends in ``.gz`` or ``.zst`` is compressed. Raises ``StorageError`` where the disk
    refuses.
    """
    import duckdb

    target = Path(out)
    how = _COMPRESSIONS.get(target.suffix, "none")

    def write(path: Path) -> None:
        copy = f"COPY ({sql_text(TIMELINE)}) TO $path {_LINES.format(how=how)}"
        store.connection.execute(copy, {**question.params, "path": str(path)})

    try:
        # Beside the target, so that the last step is a rename.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tracelake-") as folder:
            partial = Path(folder) / f"timeline{target.suffix}"
            store.reading(lambda: write(partial))
            partial.replace(target)
    except (OSError, duckdb.IOException) as error:
        raise storage_error(error, f"write {target}") from error
    return target
