"""Merges the many small files that ingests leave, and removes what nothing shows any more.

Compaction is a write like any other. The live rows of a node are copied under new ingest ids,
sorted, one file a partition, and one ledger file commits the copies. They keep the version of
what they copy, so a file that was read anew in the meantime still wins. Files that no live row
points to are removed once they are older than the grace period, for the readers that still have
them open. Compactions may run at once: one whose files another has removed begins anew, and what
it copied is only committed if that is every row the ledger tells of.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import StorageError
from pipeline.sqlfiles import PARQUET, run_sql, sql_text
from pipeline.store.lake import Store
from pipeline.store.layout import DATA_TABLES, LakePath, data_folder_of, partition_key
from pipeline.store.ledger import (
    LEDGER_SCHEMA,
    LedgerRow,
    commit,
    commit_table,
    new_batch_id,
    new_ingest_ids,
    new_version,
)
from pipeline.store.storage import delete_files, put_file, storage_errors

__all__ = ["CompactReport", "compact", "delete_run"]

DEFAULT_GRACE_SECONDS = 3600.0
_ORPHAN_SECONDS = 3600.0
_ATTEMPTS = 3


@dataclass(frozen=True)
class CompactReport:
    """What a compaction did: files merged into how many, and files removed."""

    files_before: int
    files_after: int
    removed: int


def delete_run(store: Store, run: str) -> int:
    """Delete a run: one more ledger row. Returns how many files it hides.

    The data files stay until a compaction after the grace period. The files it was read from can
    be ingested again; so can those of a run that expired. Raises ``SourceError`` where there is no
    such run.
    """
    return _hide(store, run, "delete")


def expire_run(store: Store, run: str) -> int:
    """Let go of a run as ``delete_run`` does, but the files it was read from, which may still be
    where they are, are not ingested again.
    """
    return _hide(store, run, "expire")


def _hide(store: Store, run: str, action: str) -> int:
    store.refresh()
    expired = run_sql(store.connection, "queries/expired_files", {"run": run}).fetchall()
    files = len(expired) or store.run(run).sources().height
    ((latest,),) = run_sql(store.connection, "queries/latest_version").fetchall()
    batch_id = new_batch_id()
    row = LedgerRow(
        action=action,
        ingest_id=new_ingest_ids(1)[0],
        version=new_version(latest),
        run=run,
        batch_id=batch_id,
        run_key=partition_key(run),
    )
    commit(store.lake, batch_id, [row])
    return files


def compact(
    store: Store, run: str | None = None, grace_seconds: float = DEFAULT_GRACE_SECONDS
) -> CompactReport:
    """Compact one run, or all, and remove dead files that are older than ``grace_seconds``."""
    if run is not None:
        store.run(run)
    before = after = 0
    doing = f"compact the lake {store.lake.root}"
    for attempt in range(1, _ATTEMPTS + 1):
        store.refresh()
        try:
            with storage_errors(doing):
                scattered = run_sql(store.connection, "queries/scattered", {"run": run}).fetchall()
                for run_key, node_key in scattered:
                    merged, written = _merge(store, run_key, node_key)
                    before, after = before + merged, after + written
            break
        # Another compaction has removed the files: it has left others.
        except StorageError:
            if attempt == _ATTEMPTS:
                raise
    store.refresh()
    with storage_errors(doing):
        removed = _remove_dead(store, grace_seconds)
    return CompactReport(before, after, removed)


def _merge(store: Store, run_key: str, node_key: str) -> tuple[int, int]:
    """Copy all live rows of one node of a run; returns files before and after.

    Raises ``StorageError`` where not all of them are there: then nothing has changed.
    """
    connection = store.connection
    where = {"run_key": run_key, "node_key": node_key}
    ledger = connection.sql(sql_text("queries/live_of_node"), params=where).to_arrow_table()
    ids = new_ingest_ids(ledger.num_rows)
    batch_id = new_batch_id()
    mapping = pa.table({"ingest_id": ledger["ingest_id"], "new_id": pa.array(list(ids))})
    files = run_sql(connection, "queries/files_of_node", where).fetchall()
    live = [(table, path) for table, path, is_live in files if is_live]
    folders = sorted({(table, path.rpartition("/")[0]) for table, path in live})
    connection.register("mapping", mapping)
    targets: list[str] = []
    rows = 0
    try:
        for table, folder in folders:
            paths = [p for kind, p in live if (kind, p.rpartition("/")[0]) == (table, folder)]
            targets.append(f"{store.lake.relative(folder)}/{batch_id}.parquet")
            rows += _rewrite(store, paths, targets[-1])
    finally:
        connection.unregister("mapping")
    told = pc.sum(pc.add(ledger["event_rows"], ledger["metric_rows"])).as_py() or 0
    if rows != told:
        delete_files(store.lake, [store.lake.path(target) for target in targets])
        raise StorageError(
            f"cannot compact {run_key}/{node_key} of {store.lake.root}: files hold {rows} of "
            f"{told} rows that the ledger tells of; see what tracelake verify says"
        )
    # Of two rows of one version the later commit counts.
    changes = {
        "ingest_id": mapping["new_id"],
        "batch_id": pa.array([batch_id] * ledger.num_rows),
        "committed_at": pa.array([datetime.now(UTC)] * ledger.num_rows),
    }
    copies = ledger.select(LEDGER_SCHEMA.names)
    for name, values in changes.items():
        copies = copies.set_column(copies.schema.get_field_index(name), name, values)
    commit_table(store.lake, batch_id, copies.cast(LEDGER_SCHEMA))
    return len(live), len(folders)


def _rewrite(store: Store, paths: list[str], target: str) -> int:
    """Write the live rows of some files of a folder as one file; returns how many."""
    copy = f"COPY ({sql_text('queries/rewrite')}) TO $path ({PARQUET})"
    rows = 0

    def write(path: str) -> None:
        nonlocal rows
        result = store.connection.execute(copy, {"files": paths, "path": path})
        ((rows,),) = result.fetchall()

    put_file(store.lake, target, write)
    return rows


def _remove_dead(store: Store, grace_seconds: float) -> int:
    """Remove data and ledger files that have shown nothing for longer than the grace period.

    A data file of a batch that the ledger does not know may belong to an ingest that is about to
    commit, so those have an hour at least, from when they were written.
    """
    lake, now = store.lake, time.time()
    dead_for: dict[tuple[str, str], float] = {}  # by folder of the node, and batch; seconds
    ledger_dead_for: dict[str, float] = {}
    for batch_id, run_key, node_key, since in run_sql(
        store.connection, "queries/dead_since"
    ).fetchall():
        seconds = -1.0 if since is None else now - since.timestamp()
        ledger_dead_for[batch_id] = min(seconds, ledger_dead_for.get(batch_id, seconds))
        if node_key is not None:
            for table in DATA_TABLES:
                folder = data_folder_of(table, run_key, node_key, "").rpartition("/")[0]
                dead_for[folder, batch_id] = seconds
    needed = {row[0] for row in run_sql(store.connection, "queries/needed_ledger").fetchall()}

    dead: list[str] = []
    for table in DATA_TABLES:
        for path, batch_id, age in _files(lake, table, now):
            folder = lake.relative(path).rsplit("/", 2)[0]
            if batch_id not in ledger_dead_for:
                is_dead = age >= max(grace_seconds, _ORPHAN_SECONDS)
            else:
                seconds = dead_for.get((folder, batch_id), -1.0)
                is_dead = seconds >= 0 and seconds >= grace_seconds
            if is_dead:
                dead.append(path)
    # Ledger files go last: without them nothing would know that the data files are dead.
    for path, batch_id, _ in _files(lake, "sources", now):
        seconds = ledger_dead_for.get(batch_id, -1.0)
        if batch_id not in needed and seconds >= 0 and seconds >= grace_seconds:
            dead.append(path)
    delete_files(lake, dead)
    return len(dead)


def _files(lake: LakePath, table: str, now: float) -> Iterator[tuple[str, str, float]]:
    """Path, batch and age in seconds of each file of a table, those still written among them."""
    for path, info in lake.fs.find(lake.path(table), detail=True).items():
        name = path.rsplit("/", 1)[-1]
        if name != "_empty.parquet":
            batch_id = name.lstrip(".").split(".")[0].partition("_")[0]
            yield path, batch_id, now - _changed(info)


def _changed(info: dict[str, Any]) -> float:
    """When a file was written, in seconds since the epoch; now if the storage does not say."""
    changed = info.get("mtime") or info.get("LastModified") or info.get("created")
    if changed is None:
        return time.time()
    return float(changed.timestamp()) if hasattr(changed, "timestamp") else float(changed)
