"""Reads and writes batches of files, and commits them.

What is committed at once becomes visible at once.

An error of one file is part of its ledger row and never stops the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline import settings
from pipeline.errors import StorageError, storage_error
from pipeline.sources import Skipped, Source, Unreadable
from pipeline.sources.spool import Spool
from pipeline.spill import spill_folder
from pipeline.store.layout import LakePath, partition_key
from pipeline.store.ledger import (
    LedgerRow,
    commit,
    new_batch_id,
    new_ingest_ids,
    new_version,
)
from pipeline.store.storage import storage_errors

if TYPE_CHECKING:
    from pipeline.sources.document import Document

__all__ = [
    "BatchResult",
    "Gone",
    "WrittenBatch",
    "commit_batches",
    "commit_unreadable",
    "write_batch",
]

_NO_NODE = "node0"


@dataclass(frozen=True)
class WrittenBatch:
    """A batch whose rows are in the lake and which nobody sees yet: its part of the ledger."""

    batch_id: str
    rows: tuple[LedgerRow, ...]
    written_bytes: int
    last: str


@dataclass(frozen=True)
class Gone:
    """A file that was read while it was open, up to a version of the ledger, and is there no more:
    its writer has closed it, under another name.
    """

    uri: str
    run: str
    version: int


@dataclass(frozen=True)
class BatchResult:
    """What batches brought: counts, and the files that could not be read."""

    files: int
    bytes: int
    events: int
    metrics: int
    rejected: int
    written_bytes: int
    files_by_format: dict[str, int]
    failed: tuple[Skipped, ...]
    last: str


def commit_unreadable(place: LakePath, failed: Sequence[Unreadable], latest: int) -> None:
    """Put the files that could not be opened into the ledger, each with its reason."""
    batch_id, version = new_batch_id(), new_version(latest)
    ids = new_ingest_ids(len(failed))
    rows = [
        LedgerRow(
            action="ingest",
            ingest_id=ingest_id,
            version=version,
            run=bad.source.run,
            batch_id=batch_id,
            run_key=partition_key(bad.source.run),
            node=_NO_NODE,
            node_key=_NO_NODE,
            uri=bad.source.uri,
            format=bad.source.format,
            size_bytes=bad.source.size_bytes,
            fingerprint=bad.source.fingerprint,
            error=bad.reason,
        )
        for ingest_id, bad in zip(ids, failed, strict=True)
    ]
    commit(place, batch_id, rows)


@dataclass(frozen=True)
class _Reading:
    """A document that was read, or the reason why not."""

    source: Source
    node: str
    rank: int | None
    base_ns: int | None
    truncated: bool = False
    repairs: tuple[str, ...] = ()
    metadata: str | None = None
    rejected: int = 0
    empty_events: int = 0
    rejects: tuple[Any, ...] = ()
    error: str | None = None


def write_batch(place: LakePath, batch: Sequence[Source], latest: int) -> WrittenBatch:
    """Read and write one batch. ``latest`` is the highest version in the ledger.

    Raises ``StorageError`` where the lake cannot be written; then nothing of it is visible.
    """
    from pipeline.normalize import FileSlot, Workspace
    from pipeline.split import KEEP_REJECTS
    from pipeline.store.writer import write_rows

    batch_id, version = new_batch_id(), new_version(latest)
    ids = new_ingest_ids(len(batch))
    with (
        storage_errors("work in the folder for temporary files (TMPDIR)"),
        spill_folder() as spill,
        Workspace(settings.ingest_memory(), settings.threads(), spill) as workspace,
    ):
        with Spool(batch, spill) as spool:
            readings = [_read(workspace, spool, source, no) for no, source in enumerate(batch)]
        slots = [
            FileSlot(
                no,
                ids[no],
                partition_key(reading.source.run),
                partition_key(reading.node),
                reading.source.format,
                reading.rank,
                reading.base_ns,
            )
            for no, reading in enumerate(readings)
        ]
        accounts = workspace.finish(slots)
        written = write_rows(place, workspace, batch_id)
        rows = []
        for reading, slot, account in zip(readings, slots, accounts, strict=True):
            rejects = sorted(
                (*reading.rejects, *workspace.rejects.get(slot.file_no, ())),
                key=lambda reject: reject.byte_offset,
            )
            counts = asdict(account)
            del counts["file_no"]
            counts["events_read"] += reading.rejected
            counts["rejected"] += reading.rejected
            counts["empty_events"] += reading.empty_events
            rows.append(
                LedgerRow(
                    action="ingest",
                    ingest_id=slot.ingest_id,
                    version=version,
                    run=reading.source.run,
                    node=reading.node,
                    run_key=slot.run_key,
                    node_key=slot.node_key,
                    rank=reading.rank,
                    uri=reading.source.uri,
                    format=reading.source.format,
                    size_bytes=reading.source.size_bytes,
                    fingerprint=reading.source.fingerprint,
                    batch_id=batch_id,
                    truncated=reading.truncated,
                    repairs=_repairs(reading, workspace.mended(slot.file_no)),
                    rejects=tuple(asdict(reject) for reject in rejects[:KEEP_REJECTS]),
                    metadata=reading.metadata,
                    error=reading.error,
                    **counts,
                )
            )
    return WrittenBatch(batch_id, tuple(rows), written, batch[-1].uri)


def commit_batches(
    place: LakePath, batches: Sequence[WrittenBatch], gone: Sequence[Gone] = ()
) -> BatchResult:
    """Make batches visible and hide files that are ``gone``, all of it at once.

    Raises ``StorageError`` where the lake cannot be written; then nothing of it has happened.
    """
    rows = [row for batch in batches for row in batch.rows]
    batch_id = batches[0].batch_id if batches else new_batch_id()
    commit(place, batch_id, [*rows, *_gone_rows(batch_id, gone)])
    good = [row for row in rows if row.error is None]
    formats: dict[str, int] = {}
    for row in good:
        formats[row.format or ""] = formats.get(row.format or "", 0) + 1
    return BatchResult(
        files=len(good),
        bytes=sum(row.size_bytes or 0 for row in good),
        events=sum(row.event_rows for row in good),
        metrics=sum(row.metric_rows for row in good),
        rejected=sum(row.rejected for row in good),
        written_bytes=sum(batch.written_bytes for batch in batches),
        files_by_format=formats,
        failed=tuple(Skipped(row.uri or "", row.error) for row in rows if row.error is not None),
        last=batches[-1].last if batches else "",
    )


def _gone_rows(batch_id: str, gone: Sequence[Gone]) -> list[LedgerRow]:
    return [
        LedgerRow(
            action="gone",
            ingest_id=ingest_id,
            version=new_version(file.version),
            run=file.run,
            batch_id=batch_id,
            run_key=partition_key(file.run),
            uri=file.uri,
        )
        for ingest_id, file in zip(new_ingest_ids(len(gone)), gone, strict=True)
    ]


def _read(workspace: Any, spool: Spool, source: Source, file_no: int) -> _Reading:
    """Read one document into the workspace; an error is part of the answer."""
    from pipeline.sources.detect import format_named
    from pipeline.split import DocumentSplitter

    node = _NO_NODE if source.node is None else source.node
    try:
        with _opened(spool, source) as document:
            splitter = DocumentSplitter(_reader(document.read))
            workspace.read(splitter, file_no, source.format == "system")
            damage = document.damage
    except _Unreadable as error:
        workspace.forget(file_no)
        reason = str(storage_error(error.cause, f"read {source.uri}"))
        return _Reading(source, node, source.rank, source.base_ns, error=reason)
    except Exception as error:
        if isinstance(error, StorageError) or _is_of_workspace(error):
            raise
        # A fault of tracelake must not stop the other files either.
        workspace.forget(file_no)
        reason = f"cannot read {source.uri}: please report this: {error!r}"
        return _Reading(source, node, source.rank, source.base_ns, error=reason)
    finally:
        spool.done(source)
    told = format_named(source.format).from_metadata(splitter.metadata)
    metadata = json.dumps(splitter.metadata) if splitter.metadata else None
    return _Reading(
        source,
        node=node if told.node is None or source.node is not None else told.node,
        rank=source.rank if told.rank is None else told.rank,
        base_ns=source.base_ns if told.base_ns is None else told.base_ns,
        truncated=splitter.truncated or damage is not None,
        repairs=(*splitter.repairs, *told.left_out, *([damage] if damage else [])),
        metadata=metadata,
        rejected=splitter.rejected,
        empty_events=splitter.empty_events,
        rejects=splitter.rejects,
    )


def _is_of_workspace(error: Exception) -> bool:
    """Whether the machine, and no document, is why reading failed."""
    import duckdb

    of_machine = (OSError, MemoryError, duckdb.IOException, duckdb.OutOfMemoryException)
    return isinstance(error, of_machine)


def _repairs(reading: _Reading, mended: int) -> tuple[str, ...]:
    """All that was put right in a document: in its structure, then in its events."""
    if not mended:
        return reading.repairs
    return (*reading.repairs, f"the text of {mended} event{'s' * (mended > 1)} mended")


class _Unreadable(Exception):
    """The source failed while it was read, unlike the lake or the temporary folder."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _opened(spool: Spool, source: Source) -> Document:
    """The document of a source; whatever opening it raises is the source's fault, unless the disk
    here is full.
    """
    try:
        return spool.open(source)
    except StorageError:
        raise
    except Exception as error:
        raise _Unreadable(error) from error


def _reader(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def reading(size: int) -> bytes:
        try:
            return read(size)
        except StorageError:
            raise
        except Exception as error:
            raise _Unreadable(error) from error

    return reading
