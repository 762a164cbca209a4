"""Hands events to DuckDB: an Arrow batch of string views into the bytes that were read.

A string view (Arrow columnar format, "Variable-size Binary View Layout") is 16 bytes: length,
then either up to 12 bytes in place, or a 4-byte prefix, a buffer number and an offset. So a
column of events is made without copying an event.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.split.scan import Scan
from pipeline.split.words import first_bytes

__all__ = [
    "FIELDS",
    "FLOW_END_NEXT",
    "PHASES",
    "SCHEMA",
    "numbered",
    "places",
    "scanned_lines",
    "view_array",
]

_PLACE = [("file_no", pa.int32()), ("seq", pa.int64()), ("byte_offset", pa.int64())]

SCHEMA = pa.schema(
    [
        *_PLACE,
        ("head", pa.string_view()),
        # Marked as JSON so that DuckDB takes it as such without parsing it once more.
        pa.field("args", pa.string_view(), metadata={"ARROW:extension:name": "arrow.json"}),
    ]
)
"""A line an event: its ordinal and byte offset in the document, its JSON text without the value
of ``args``, and that value as it was written (null where it is no object)."""

FLOW_END_NEXT = "f>"
"""Stands for the phase of a flow that ends at the slice which begins next (``f`` without
``"bp":"e"``), where ``f`` is one that ends at the slice it lies in."""

PHASES = ("X", "i", "I", "R", "s", "t", "f", FLOW_END_NEXT, "n", "T", "p", "N", "O", "D", "c")
"""Phases of events that stand for themselves: no other event decides what becomes of them."""

FIELDS = pa.schema(
    [
        *_PLACE,
        ("ph", pa.string()),
        ("name", pa.string()),
        ("category", pa.string()),
        ("ts_ns", pa.int64()),
        ("dur_ns", pa.int64()),
        ("pid", pa.int64()),
        ("tid", pa.int64()),
        ("id", pa.string()),
        ("args", pa.json_()),
    ]
)
"""An event whose fields were taken by position: columns as in sql/normalize/tables.sql."""

_IN_PLACE = 12


def view_array(
    buffer: pa.Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    valid: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """A string-view array whose element ``i`` is ``buffer[starts[i]:ends[i]]``, null if not valid.

    The buffer must be shorter than 2 GiB.
    """
    data = np.frombuffer(buffer, np.uint8)
    lengths = ends - starts
    views = np.empty((len(starts), 2), np.uint64)
    prefix = first_bytes(data, starts, np.minimum(lengths, 4))
    views[:, 0] = lengths.astype(np.uint64) | prefix << np.uint64(32)
    views[:, 1] = starts.astype(np.uint64) << np.uint64(32)
    small = np.flatnonzero((lengths <= _IN_PLACE) & (lengths > 4))
    views[small, 1] = first_bytes(data, starts[small] + 4, lengths[small] - 4)
    views[lengths <= 4, 1] = 0
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string_view(), len(starts), [mask, pa.py_buffer(views), buffer], -1 if mask else 0
    )


def places(seq: NDArray[np.int64], byte_offsets: NDArray[np.int64]) -> dict[str, pa.Array]:
    """The columns that say where events stand; the file is set by ``numbered``."""
    return {
        "file_no": pa.repeat(pa.scalar(0, pa.int32()), len(seq)),
        "seq": pa.array(seq),
        "byte_offset": pa.array(byte_offsets),
    }


def numbered(
    batch: pa.RecordBatch, file_no: int, seq: int = 0, byte_offset: int = 0
) -> pa.RecordBatch:
    """The batch as one of a file, its ordinals and offsets counted on from these."""
    columns = [
        pa.repeat(pa.scalar(file_no, pa.int32()), batch.num_rows),
        pa.array(batch["seq"].to_numpy() + seq),
        pa.array(batch["byte_offset"].to_numpy() + byte_offset),
        *batch.columns[3:],
    ]
    return pa.record_batch(columns, schema=batch.schema)


def scanned_lines(window: bytes, scan: Scan, seq: int, base: int) -> pa.RecordBatch:
    """The events of a scanned window as a batch of ``SCHEMA``, numbered from ``seq``; a 0 is left
    where the value of args was. ``base``: where the window begins in the document.
    """
    edges = np.zeros(2 * len(scan.args_starts) + 2, np.int64)
    edges[1:-1:2], edges[2:-1:2], edges[-1] = scan.args_starts, scan.args_ends, len(window)
    in_args = np.repeat(np.arange(len(edges) - 1) % 2 == 1, np.diff(edges))
    head = np.where(in_args, np.uint8(ord(" ")), np.frombuffer(window, np.uint8))
    head[scan.args_starts] = ord("0")
    args_starts = np.zeros(len(scan.starts), np.int64)
    args_ends = np.zeros(len(scan.starts), np.int64)
    has_args = np.zeros(len(scan.starts), np.bool_)
    args_starts[scan.args_events] = scan.args_starts
    args_ends[scan.args_events] = scan.args_ends
    has_args[scan.args_events] = True
    columns = {
        **places(np.arange(seq, seq + len(scan.starts)), scan.starts + base),
        "head": view_array(pa.py_buffer(head), scan.starts, scan.ends),
        "args": view_array(pa.py_buffer(window), args_starts, args_ends, has_args),
    }
    return pa.record_batch([columns[name] for name in SCHEMA.names], schema=SCHEMA)
