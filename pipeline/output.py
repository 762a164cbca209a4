"""Prints the result of a query, or writes it to a file, in the format that was asked for."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from pipeline.errors import QueryError, UsageError, storage_error

if TYPE_CHECKING:
    from pipeline.store.lake import Store

__all__ = ["write_result"]

_COPY_OPTIONS = {
    "csv": "(FORMAT csv, HEADER)",
    "json": "(FORMAT json, ARRAY true)",
    "ndjson": "(FORMAT json, ARRAY false)",
    "parquet": "(FORMAT parquet, COMPRESSION zstd)",
}


def write_result(
    store: Store,
    query: str,
    params: Mapping[str, Any] | None,
    form: str,
    output: str | None,
) -> None:
    """Run ``query`` and write its rows as ``form``, to ``output`` or to standard output.

    Rows are streamed by DuckDB, so a result may be larger than memory. Raises ``QueryError`` with
    what DuckDB says, ``StorageError`` where the file cannot be written.
    """
    store.refresh()
    try:
        relation = store.connection.sql(query, params=params or None)
        if relation is None:
            return
        if form == "table":
            _write_table(relation, output)
        elif output is not None:
            _copy(relation, form, str(output))
        else:
            if form == "parquet" and sys.stdout.isatty():
                raise UsageError("parquet is not for a terminal: name a file with --output")
            with tempfile.TemporaryDirectory(prefix="tracelake-") as folder:
                path = Path(folder) / "result"
                _copy(relation, form, str(path))
                _to_stdout(path)
    except (OSError, duckdb.IOException) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise storage_error(error, f"write {output or 'to standard output'}") from error
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from error


def _write_table(relation: duckdb.DuckDBPyRelation, output: str | None) -> None:
    # On a terminal the box is cut to fit; elsewhere every row and column is there.
    if output is None and sys.stdout.isatty():
        relation.show(max_rows=200)
        return
    text = io.StringIO()
    with redirect_stdout(text):
        relation.show(max_rows=2**31 - 1, max_width=2**15)
    if output is None:
        sys.stdout.write(text.getvalue())
    else:
        Path(output).write_text(text.getvalue(), encoding="utf-8")


def _copy(relation: duckdb.DuckDBPyRelation, form: str, path: str) -> None:
    # A database of its own writes, so that the query streams while the file grows.
    with duckdb.connect(config={"threads": 1}) as writer:
        writer.register("result", relation.to_arrow_reader())
        writer.execute(f"COPY result TO $path {_COPY_OPTIONS[form]}", {"path": path})


def _to_stdout(path: Path) -> None:
    sys.stdout.flush()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            os.write(sys.stdout.fileno(), part)
