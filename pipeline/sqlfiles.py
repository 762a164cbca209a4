"""The SQL of this project: finds the files under ``sql/`` and quotes what goes into a statement.

In a checkout the files lie beside the package; in a wheel they are packed as ``pipeline/sql``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "PARQUET",
    "data_folder",
    "quote_identifier",
    "quote_literal",
    "run_sql",
    "sql_files",
    "sql_text",
]

PARQUET = "FORMAT parquet, COMPRESSION zstd, DICTIONARY_SIZE_LIMIT 10000, ROW_GROUP_SIZE 30720"
"""How data files are written. A column with more values than the limit is no smaller with a
dictionary, and slower to write. A row group is the least that a query fetches: with a quarter of
DuckDB's usual size the events of one step cost a quarter of the bytes."""

_PACKAGE = Path(__file__).parent


def _folder(name: str) -> Path:
    packed = _PACKAGE / name
    return packed if packed.is_dir() else _PACKAGE.parent / name


def data_folder() -> Path:
    """Folder of the sample jobs that come with the project."""
    return _folder("data")


@cache
def sql_text(name: str) -> str:
    """Text of ``sql/<name>.sql``; a name has no ending, as in ``views/events``."""
    return (_folder("sql") / f"{name}.sql").read_text(encoding="utf-8")


def sql_files(*folders: str) -> Iterator[str]:
    """Names of all SQL files of the given folders of ``sql/``, sorted, folder by folder."""
    root = _folder("sql")
    for folder in folders:
        for path in sorted((root / folder).rglob("*.sql")):
            yield path.relative_to(root).with_suffix("").as_posix()


def run_sql(
    connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Run one SQL file, with values for its ``$name`` parameters; returns what to fetch from.

    A file with parameters holds one statement: DuckDB takes none for several at once.
    """
    if parameters is None:
        return connection.execute(sql_text(name))
    return connection.execute(sql_text(name), parameters)


def quote_identifier(name: str) -> str:
    """``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """``text`` as an SQL string literal, for the places that take no parameter (a view's glob)."""
    return "'" + text.replace("'", "''") + "'"
