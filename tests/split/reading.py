"""Reads a document as ingest does, for the tests of this folder."""

from __future__ import annotations

import io
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.normalize import Workspace
from pipeline.split import DocumentSplitter


def read_rows(
    document: bytes, block_size: int, columns: str, condition: str
) -> tuple[list[tuple[Any, ...]], DocumentSplitter]:
    """Columns of the events that meet a condition, in the order of the document, and the
    splitter. At most 250,000 events.
    """
    splitter = DocumentSplitter(io.BytesIO(document).read, block_size=block_size)
    with TemporaryDirectory() as spill, Workspace("200MB", 1, spill) as workspace:
        workspace.read(splitter, 0, False)
        workspace.finish([])
        list(workspace.partitions())
        rows = workspace.connection.execute(
            f"SELECT {columns} FROM (SELECT * FROM staged UNION ALL BY NAME SELECT * FROM parsed)"
            f" WHERE {condition} ORDER BY seq"
        ).fetchall()
    return rows, splitter
