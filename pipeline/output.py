"""Prints the result of a query, or writes it to a file, in the format that was asked for."""

from __future__ import annotations

import io
import os
import shutil
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
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is not for a terminal: name a file with --output")

    def run() -> str | Path | None:
        """What is left to print: the text of a table, or a file with the rows."""
        relation = store.connection.sql(query, params=params or None)
        if relation is None:
            return None
        if form == "table":
            return _table_text(relation, for_terminal=output is None and sys.stdout.isatty())
        _copy(relation, form, str(target))
        return target

    with tempfile.TemporaryDirectory(prefix="tracelake-") as folder:
        target = Path(folder) / "result" if output is None else Path(output)
        try:
            result = store.reading(run)
        except duckdb.Error as error:
            if isinstance(error, duckdb.IOException) and str(target) in str(error):
                raise storage_error(error, f"write {target}") from error
            raise QueryError(str(error).strip()) from error
        if isinstance(result, str):
            _put_text(result, output)
        elif result is not None and output is None:
            _to_stdout(result)


def _put_text(text: str, output: str | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise storage_error(error, f"write {output}") from error


def _table_text(relation: duckdb.DuckDBPyRelation, for_terminal: bool) -> str:
    """The rows as a box: cut to fit a terminal, else with every row and column."""
    text = io.StringIO()
    with redirect_stdout(text):
        if for_terminal:
            width = shutil.get_terminal_size().columns
            relation.show(max_rows=200, max_width=width)
        else:
            relation.show(max_rows=2**31 - 1, max_width=2**15)
    return text.getvalue()


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
