"""Makes a lake, and refuses what is none.

``tracelake.json`` marks the folder; ``lake.duckdb`` beside it holds the views for any program
with DuckDB in it. Views name the absolute place of the lake, so a lake that was moved, or was
written by another release, gets new ones from the next command that opens it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import LakeError
from pipeline.settings import MARKER
from pipeline.sqlfiles import quote_literal, run_sql, sql_files, sql_text
from pipeline.store.layout import DATA_TABLES, EMPTY_PARTITION, LAKE_VERSION, LakePath
from pipeline.store.ledger import LEDGER_SCHEMA
from pipeline.store.storage import put_file, storage_errors

if TYPE_CHECKING:
    import duckdb

__all__ = ["ALL_VIEWS", "LEDGER_VIEWS", "create_views", "open_lake"]

ALL_VIEWS = ("functions", "views", "training", "macros")
LEDGER_VIEWS = ("functions", "views")
"""Folders of ``sql/``, in the order in which they are run: of all views and macros, and of those
that are enough to ask the ledger. The macros take three quarters of the time."""


def open_lake(lake: LakePath, create: bool = False) -> None:
    """Check that ``lake`` is one that this version can use; make it first if it may be made.

    Raises ``LakeError`` where it is none, or of a newer version; ``StorageError`` where the
    storage refuses.
    """
    with storage_errors(f"open the lake {lake.root}"):
        marker = _read_marker(lake)
        if marker is None:
            if lake.fs.isfile(lake.root):
                raise LakeError(f"{lake.root} is a file, not a lake: choose a folder")
            strangers = _strangers(lake)
            if strangers:
                raise LakeError(
                    f"{lake.root} is not a lake, and holds other files ({strangers}): "
                    "choose a new or empty folder"
                )
            if not create:
                raise LakeError(f"no lake at {lake.root}: make one with 'tracelake ingest'")
            _create(lake)
            marker = {}
    if marker.get("lake_version", LAKE_VERSION) > LAKE_VERSION:
        raise LakeError(
            f"the lake {lake.root} is of version {marker['lake_version']}, this tracelake knows "
            f"up to {LAKE_VERSION}: upgrade with 'pip install -U tracelake'"
        )
    expected = _marker_for(lake)
    if marker != expected:
        if lake.is_local:
            # Made elsewhere: DuckDB reads a question mark in the path of a database as options.
            with tempfile.TemporaryDirectory(prefix="tracelake-") as folder:
                database = str(Path(folder) / "lake.duckdb")
                _write_database(lake, database)
                put_file(lake, "lake.duckdb", lambda path: shutil.copyfile(database, path))
        _write_marker(lake, expected)


def _read_marker(lake: LakePath) -> dict[str, Any] | None:
    path = lake.path(MARKER)
    try:
        with lake.fs.open(path, "rb") as file:
            marker = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        marker = None
    if not isinstance(marker, dict) or not isinstance(marker.get("lake_version"), int):
        raise LakeError(f"{path} is damaged: delete it, the next ingest writes it anew")
    return marker


def _strangers(lake: LakePath) -> str:
    """What is in the folder that no half-made lake would have."""
    own = {"sources", *DATA_TABLES, "lake.duckdb"}
    if not lake.fs.isdir(lake.root):
        return ""
    names = (entry.rstrip("/").rsplit("/", 1)[-1] for entry in lake.fs.ls(lake.root, detail=False))
    return ", ".join(sorted(name for name in names if name not in own and name[0] != ".")[:3])


def _create(lake: LakePath) -> None:
    """Put a file without rows into each table, so that the views have something to stand on."""
    import pyarrow.parquet as pq

    from pipeline.normalize import Partition, Workspace

    nothing = Partition("~", "~", "trace", None, 0, True, True)
    with (
        tempfile.TemporaryDirectory(prefix="tracelake-") as spill,
        Workspace("100MB", 1, spill) as workspace,
    ):
        workspace.finish([])
        for table in DATA_TABLES:

            def write(path: str, table: str = table) -> None:
                workspace.copy_rows(table, nothing, path)

            put_file(lake, f"{table}/{EMPTY_PARTITION}/_empty.parquet", write)
    empty = LEDGER_SCHEMA.empty_table()
    put_file(lake, "sources/_empty.parquet", lambda path: pq.write_table(empty, path))


def _marker_for(lake: LakePath) -> dict[str, Any]:
    digest = hashlib.sha256()
    for name in sql_files(*ALL_VIEWS):
        digest.update(sql_text(name).encode())
    root = lake.url("")
    return {"lake_version": LAKE_VERSION, "root": root, "views": digest.hexdigest()[:16]}


def _write_marker(lake: LakePath, marker: dict[str, Any]) -> None:
    text = json.dumps(marker, indent=1) + "\n"
    put_file(lake, MARKER, lambda path: Path(path).write_text(text, encoding="utf-8"))


def _write_database(lake: LakePath, path: str) -> None:
    import duckdb

    with duckdb.connect(path) as connection:
        ledger = quote_literal(lake.glob("sources"))
        connection.execute(f"CREATE VIEW _ledger AS SELECT * FROM read_parquet({ledger})")
        create_views(connection, lake)


def create_views(
    connection: duckdb.DuckDBPyConnection, lake: LakePath, folders: tuple[str, ...] = ALL_VIEWS
) -> None:
    """Make the views and macros of these folders of ``sql/``; ``_ledger`` must be there."""
    _create_file_views(
        connection, lambda table: lake.url(f"{table}/{EMPTY_PARTITION}/_empty.parquet")
    )
    for name in sql_files(*folders):
        run_sql(connection, name)
    # Only now over all files: each view above would have listed them and opened one.
    _create_file_views(connection, lake.glob)


def _create_file_views(
    connection: duckdb.DuckDBPyConnection, files_of: Callable[[str], str]
) -> None:
    """The views over the files of each data table, which ``files_of`` names."""
    for table, name in (("events", "_event"), ("metrics", "_metric")):
        files = f"{quote_literal(files_of(table))}, hive_partitioning=1, hive_types_autocast=0"
        connection.execute(
            f"CREATE OR REPLACE VIEW {name}_files AS SELECT * FROM read_parquet({files})"
        )
        connection.execute(
            f"CREATE OR REPLACE VIEW {name}_locations AS SELECT run, node, hour, filename,"
            f" ingest_id FROM read_parquet({files}, filename=true)"
        )
