"""Writes the rows of a batch as Parquet files, sorted by time, one or more a partition."""

from __future__ import annotations

from pipeline.normalize import Partition, Workspace
from pipeline.store.layout import LakePath, data_folder_of, hour_name
from pipeline.store.storage import put_file

__all__ = ["write_rows"]


def write_rows(lake: LakePath, workspace: Workspace, batch_id: str) -> int:
    """Write all rows of the workspace; returns the bytes written. Nothing is visible yet."""
    written = 0
    for partition in workspace.partitions():
        for table, has_rows in (
            ("events", partition.has_events),
            ("metrics", partition.has_metrics),
        ):
            if has_rows:
                written += _write(lake, workspace, batch_id, partition, table)
    return written


def _write(
    lake: LakePath, workspace: Workspace, batch_id: str, partition: Partition, table: str
) -> int:
    folder = data_folder_of(
        table, partition.run_key, partition.node_key, hour_name(partition.hour_no)
    )
    return put_file(
        lake,
        f"{folder}/{batch_id}_{partition.segment}.parquet",
        lambda path: workspace.copy_rows(table, partition, path),
    )
