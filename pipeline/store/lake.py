"""Opens a lake for queries: a DuckDB connection in which every view and macro is there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline import settings
from pipeline.errors import QueryError, SourceError
from pipeline.sqlfiles import run_sql
from pipeline.store.layout import DATA_TABLES, LakePath
from pipeline.store.marker import ALL_VIEWS, create_views, open_lake
from pipeline.store.storage import lake_path, storage_errors

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from pipeline.query.run import Run

__all__ = ["Store"]

T = TypeVar("T")
_TRIES = 5


class Store:
    """A lake that is open for queries. A context manager; make one with ``Store.open``.

    ``connection`` is DuckDB's, with the views ``events``, ``metrics``, ``sources``, ``runs``,
    ``rejects`` and the macros. It sees the lake as of the last ``refresh``; every method here
    refreshes first, so each answer is from one committed state.
    """

    def __init__(self, lake: LakePath, folders: tuple[str, ...] = ALL_VIEWS) -> None:
        import duckdb

        self.lake = lake
        self._ledger_files: set[str] = set()
        # A connection does one thing at a time.
        self._lock = threading.RLock()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            config={
                "memory_limit": settings.query_memory(),
                "threads": settings.threads(),
                # Else an as-of join of few rows with many goes through all pairs.
                "asof_loop_join_threshold": 0,
            }
        )
        if not lake.is_local:
            self.connection.register_filesystem(lake.fs)
            # Its cache fetches blocks of two megabytes where a query needs a few kilobytes.
            self.connection.execute("SET enable_external_file_cache = false")
            self.connection.execute("SET parquet_metadata_cache = true")
        with storage_errors(f"read the lake {lake.root}"):
            self.connection.execute(
                "CREATE TABLE _ledger AS SELECT *, '' AS ledger_file FROM read_parquet(?)",
                [lake.url("sources/_empty.parquet")],
            )
            create_views(self.connection, lake, folders)
            self.refresh()

    @classmethod
    def open(
        cls,
        lake: str | os.PathLike[str],
        storage_options: Mapping[str, object] | None = None,
    ) -> Store:
        """Open the lake at a path or any URL that fsspec knows.

        Raises ``LakeError`` where there is none or it is of a newer version, ``StorageError``
        where the storage refuses.
        """
        place = lake_path(lake, storage_options)
        open_lake(place)
        return cls(place)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def refresh(self) -> None:
        """See what was committed since; reads only the ledger files that are new."""
        with storage_errors(f"read the ledger of {self.lake.root}"):
            for left in reversed(range(_TRIES)):
                listed = {
                    path
                    for path in self.lake.fs.ls(self.lake.path("sources"), detail=False)
                    if path.endswith(".parquet")
                }
                gone, new = self._ledger_files - listed, sorted(listed - self._ledger_files)
                if not gone and not new:
                    return
                try:
                    self._load(new, gone)
                    self._ledger_files = listed
                    return
                except FileNotFoundError:
                    # Compaction took a file away between listing and reading.
                    if not left:
                        raise

    def _load(self, new: list[str], gone: set[str]) -> None:
        import duckdb

        urls = [p if self.lake.is_local else str(self.lake.fs.unstrip_protocol(p)) for p in new]
        self.connection.begin()
        try:
            if gone:
                self.connection.execute(
                    "DELETE FROM _ledger WHERE list_contains(?, ledger_file)",
                    [[path.rsplit("/", 1)[-1] for path in gone]],
                )
            if new:
                run_sql(self.connection, "queries/load_ledger", {"files": urls})
            self.connection.commit()
        except (duckdb.IOException, duckdb.HTTPException, OSError) as error:
            self.connection.rollback()
            if _names_no_file(error):
                raise FileNotFoundError(str(error)) from error
            raise

    def sql(
        self, query: str, params: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> pl.DataFrame:
        """Run DuckDB SQL and return its result.

        ``params`` go in for ``$name`` (a mapping) or ``?`` (a sequence). Raises ``QueryError``
        with what DuckDB says.
        """
        import duckdb
        import polars as pl

        def run() -> pl.DataFrame:
            result = self.connection.sql(query, params=params)
            if result is None:  # a statement that gives no rows
                return pl.DataFrame()
            return pl.DataFrame(pl.from_arrow(result.to_arrow_table()))

        try:
            return self.reading(run)
        except duckdb.Error as error:
            raise QueryError(str(error).strip()) from error

    def reading(self, work: Callable[[], T]) -> T:
        """Refresh and do ``work``; again if a compaction took away a file it was about to open.

        Such a file shows nothing any more, so the answer of a later try is the same.
        """
        import duckdb

        with self._lock:
            for _ in range(_TRIES):
                self.refresh()
                try:
                    return work()
                except duckdb.IOException as error:
                    if not self._has_vanished(error):
                        raise
            self.refresh()
            return work()

    def _has_vanished(self, error: Exception) -> bool:
        """Whether a query failed since a data file of this lake is no longer there."""
        return _names_no_file(error) and any(
            self.lake.url(table) in str(error) for table in DATA_TABLES
        )

    def runs(self) -> pl.DataFrame:
        """What is in the lake, one row a run; columns as in the view ``runs``."""
        return self.sql("SELECT * FROM runs ORDER BY run")

    def run(self, name: str) -> Run:
        """One run. Raises ``SourceError`` with the known names where there is no such run."""
        from pipeline.query.run import Run

        names = self.runs()["run"].to_list()
        if name not in names:
            known = ", ".join(repr(known) for known in names[:10]) or "none yet"
            raise SourceError(f"no run {name!r} in the lake {self.lake.root}: it has {known}")
        return Run(self, name)


def _names_no_file(error: Exception) -> bool:
    """Whether DuckDB or a file system says that a file is not there, in whichever words."""
    words = ("No such file", "No files found", "FileNotFound")
    return isinstance(error, FileNotFoundError) or any(word in str(error) for word in words)
