"""Hands events to DuckDB: an Arrow batch of string views into the bytes that were read.

A string view (Arrow columnar format, "Variable-size Binary View Layout") is 16 bytes: length,
then either up to 12 bytes in place, or a 4-byte prefix, a buffer number and an offset. So a
column of events is made without copying an event.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["SCHEMA", "lines_batch", "view_array"]

SCHEMA = pa.schema(
    [
        ("file_no", pa.int32()),
        ("seq", pa.int64()),
        ("byte_offset", pa.int64()),
        ("head", pa.string_view()),
        # Marked as JSON so that DuckDB takes it as such without parsing it once more.
        pa.field("args", pa.string_view(), metadata={"ARROW:extension:name": "arrow.json"}),
    ]
)
"""A line an event: its ordinal and byte offset in the document, its JSON text without the value
of ``args``, and that value as it was written (null where it is no object)."""

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
    count = len(starts)
    lengths = ends - starts
    views = np.zeros((count, 4), np.int32)
    views[:, 0] = lengths
    views[:, 3] = starts
    last = max(len(data) - 1, 0)
    prefix = np.empty((count, 4), np.uint8)
    for column in range(4):
        prefix[:, column] = data[np.minimum(starts + column, last)]
    views[:, 1] = prefix.view(np.int32)[:, 0]
    small = np.flatnonzero(lengths <= _IN_PLACE)
    if len(small):
        columns = np.arange(_IN_PLACE)
        text = data[np.minimum(starts[small, None] + columns, last)]
        text[columns >= lengths[small, None]] = 0
        views.view(np.uint8).reshape(count, 16)[small, 4:] = text
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string_view(), count, [mask, pa.py_buffer(views), buffer], -1 if mask else 0
    )


def lines_batch(
    seq: int, byte_offsets: NDArray[np.int64], head: pa.Array, args: pa.Array
) -> pa.RecordBatch:
    """One batch of ``SCHEMA``; the events are numbered from ``seq``, the file is set later."""
    count = len(byte_offsets)
    return pa.record_batch(
        [
            pa.array(np.zeros(count, np.int32)),
            pa.array(np.arange(seq, seq + count)),
            pa.array(byte_offsets),
            head,
            args,
        ],
        schema=SCHEMA,
    )
