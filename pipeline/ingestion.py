"""Ingests trace files into a lake: discover, read in batches, write, commit each batch.

A batch is one large file, or many small ones; it is the unit that becomes visible at once, and
that is lost when the process is killed.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from pipeline import settings
from pipeline.errors import SourceError, StorageError, storage_error
from pipeline.sources import Discovery, Skipped, Source, Unreadable, discover
from pipeline.store.layout import LakePath, partition_key
from pipeline.store.ledger import (
    LedgerRow,
    commit,
    new_batch_id,
    new_ingest_ids,
    new_version,
)
from pipeline.store.marker import open_lake
from pipeline.store.storage import lake_path, storage_errors

if TYPE_CHECKING:
    from pipeline.sources.document import Document

__all__ = ["BatchResult", "IngestReport", "ingest", "ingest_batch", "plan", "plan_batches"]

_BATCH_BYTES = 64 << 20
_BATCH_FILES = 1000
_KEEP_REJECTS = 100
_NO_NODE = "node0"

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the name of the last one."""


@dataclass(frozen=True)
class BatchResult:
    """What one batch brought: counts, and the files that could not be read."""

    files: int
    bytes: int
    events: int
    metrics: int
    rejected: int
    written_bytes: int
    files_by_format: dict[str, int]
    failed: tuple[Skipped, ...]
    last: str


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did. ``bytes`` is the size of the files as stored, in bytes."""

    lake: str
    files: int = 0
    files_by_format: dict[str, int] = field(default_factory=dict)
    events: int = 0
    metrics: int = 0
    rejected: int = 0
    bytes: int = 0
    written_bytes: int = 0
    seconds: float = 0.0
    unchanged: int = 0
    runs: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()

    def as_json(self) -> str:
        """The report as one JSON object."""
        return json.dumps(asdict(self))


def plan(
    sources: Iterable[str],
    lake: str | os.PathLike[str],
    run: str | None = None,
    *,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Discovery:
    """What ``ingest`` would read, and what it would skip and why. Writes nothing."""
    place = lake_path(lake, storage_options)
    live: dict[str, tuple[str, str]] = {}
    if place.fs.exists(place.path("tracelake.json")):
        live, _ = _live_files(place)
    return _discover(sources, run, format, storage_options, live)


def ingest(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    run: str | None = None,
    *,
    format: str | None = None,
    workers: int = 1,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> IngestReport:
    """Read trace files into a lake; only what is new or has changed since.

    ``sources`` are files, folders, globs or URLs that fsspec opens; ``run`` and ``format``
    override what their names say; ``workers`` is how many processes read. A file that cannot be
    read never stops the others: it is in ``failed`` and in the ledger.

    Raises ``SourceError`` where there is nothing to read, ``LakeError`` and ``StorageError`` where
    the lake cannot be used or written.
    """
    started = time.perf_counter()
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    place = lake_path(lake, storage_options)
    names = [os.fspath(source) for source in given]
    if not names:
        raise SourceError("nothing to ingest: name a file, a folder or a URL")
    # A lake is made only once there is something to put into it.
    is_new = not place.fs.exists(place.path("tracelake.json"))
    live: dict[str, tuple[str, str]] = {}
    latest = 0
    if not is_new:
        open_lake(place)
        live, latest = _live_files(place)
    found = _discover(names, run, format, storage_options, live)
    if not (found.sources or found.unchanged or found.failed):
        reasons = "; ".join(f"{skip.uri}: {skip.reason}" for skip in found.skipped[:3])
        raise SourceError(f"no trace to ingest in {', '.join(names)} ({reasons or 'empty'})")
    if is_new:
        open_lake(place, create=True)
    if found.failed:
        _commit_unreadable(place, found.failed, latest)
    report = IngestReport(
        lake=os.fspath(lake),
        unchanged=found.unchanged,
        skipped=found.skipped,
        failed=tuple(Skipped(bad.source.uri, bad.reason) for bad in found.failed),
        runs=tuple(sorted({source.run for source in found.sources})),
    )
    for result in _read_batches(place, found.sources, latest, workers):
        report = _add(report, result)
        if progress is not None:
            done = report.files + len(report.failed) - len(found.failed)
            progress(done, len(found.sources), result.last)
    return replace(report, seconds=round(time.perf_counter() - started, 3))


def _commit_unreadable(place: LakePath, failed: Sequence[Unreadable], latest: int) -> None:
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


def _discover(
    sources: Iterable[str],
    run: str | None,
    format: str | None,
    options: Mapping[str, Any] | None,
    live: Mapping[str, tuple[str, str]],
) -> Discovery:
    return discover(
        sources,
        run=run,
        format=format,
        storage_options=options,
        known=lambda uri, fingerprint, run_name: live.get(uri) == (fingerprint, run_name),
    )


def _live_files(place: LakePath) -> tuple[dict[str, tuple[str, str]], int]:
    """Fingerprint and run of each file in the lake, and the latest version of the ledger."""
    from pipeline.store.lake import Store

    with Store(place) as store:
        rows = store.connection.execute(
            "SELECT uri, fingerprint, run FROM _live_sources"
        ).fetchall()
        version = store.connection.execute("SELECT max(version) FROM _ledger").fetchall()[0][0]
    return {uri: (fingerprint, run) for uri, fingerprint, run in rows}, version or 0


def plan_batches(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Group files: about 64 MB as stored, at most 1,000 files, a run after the other."""
    batch: list[Source] = []
    size = 0
    for source in sorted(sources, key=lambda s: (s.run, s.node or "", s.uri)):
        if batch and (size + source.size_bytes > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += source.size_bytes
    if batch:
        yield batch


def _read_batches(
    place: LakePath, sources: Sequence[Source], latest: int, workers: int
) -> Iterator[BatchResult]:
    batches = list(plan_batches(sources))
    if workers <= 1 or len(batches) <= 1:
        for batch in batches:
            yield ingest_batch(place, batch, latest)
        return
    with ProcessPoolExecutor(min(workers, len(batches)), mp_context=get_context("spawn")) as pool:
        futures: list[Future[BatchResult]] = [
            pool.submit(ingest_batch, place, batch, latest) for batch in batches
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _add(report: IngestReport, result: BatchResult) -> IngestReport:
    formats = dict(report.files_by_format)
    for name, count in result.files_by_format.items():
        formats[name] = formats.get(name, 0) + count
    return replace(
        report,
        files=report.files + result.files,
        files_by_format=dict(sorted(formats.items())),
        events=report.events + result.events,
        metrics=report.metrics + result.metrics,
        rejected=report.rejected + result.rejected,
        bytes=report.bytes + result.bytes,
        written_bytes=report.written_bytes + result.written_bytes,
        failed=report.failed + result.failed,
    )


@dataclass(frozen=True)
class _Reading:
    """A document that was read, or the reason why not."""

    source: Source
    node: str
    rank: int | None
    base_ns: int | None
    events: int = 0
    truncated: bool = False
    repairs: tuple[str, ...] = ()
    metadata: str | None = None
    rejected: int = 0
    empty_events: int = 0
    rejects: tuple[Any, ...] = ()
    error: str | None = None


def ingest_batch(place: LakePath, batch: Sequence[Source], latest: int) -> BatchResult:
    """Read, write and commit one batch. ``latest`` is the highest version in the ledger.

    Raises ``StorageError`` where the lake cannot be written; then nothing of it is visible.
    """
    from pipeline.normalize import FileSlot, Workspace
    from pipeline.store.writer import write_rows

    batch_id, version = new_batch_id(), new_version(latest)
    ids = new_ingest_ids(len(batch))
    with (
        storage_errors("work in the folder for temporary files (TMPDIR)"),
        tempfile.TemporaryDirectory(prefix="tracelake-") as spill,
        Workspace(settings.ingest_memory(), settings.threads(), spill) as workspace,
    ):
        readings = [_read(workspace, source, no) for no, source in enumerate(batch)]
        slots = [
            FileSlot(
                no,
                ids[no],
                partition_key(reading.source.run),
                partition_key(reading.node),
                reading.source.format,
                reading.rank,
                reading.base_ns,
                reading.events,
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
                    repairs=reading.repairs,
                    rejects=tuple(asdict(reject) for reject in rejects[:_KEEP_REJECTS]),
                    metadata=reading.metadata,
                    error=reading.error,
                    **counts,
                )
            )
    commit(place, batch_id, rows)
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
        written_bytes=written,
        files_by_format=formats,
        failed=tuple(Skipped(row.uri or "", row.error) for row in rows if row.error is not None),
        last=batch[-1].uri,
    )


def _read(workspace: Any, source: Source, file_no: int) -> _Reading:
    """Read one document into the workspace; an error is part of the answer."""
    from pipeline.sources.detect import format_named
    from pipeline.split import DocumentSplitter

    node = _NO_NODE if source.node is None else source.node
    try:
        with _opened(source) as document:
            splitter = DocumentSplitter(_reader(document.read))
            workspace.read(splitter, file_no, source.format == "system")
            damage = document.damage
    except _Unreadable as error:
        workspace.forget(file_no)
        reason = str(storage_error(error.cause, f"read {source.uri}"))
        return _Reading(source, node, source.rank, source.base_ns, error=reason)
    told = format_named(source.format).from_metadata(splitter.metadata)
    metadata = json.dumps(splitter.metadata) if splitter.metadata else None
    return _Reading(
        source,
        node=node if told.node is None or source.node is not None else told.node,
        rank=source.rank if told.rank is None else told.rank,
        base_ns=source.base_ns if told.base_ns is None else told.base_ns,
        events=splitter.events_found,
        truncated=splitter.truncated or damage is not None,
        repairs=(*splitter.repairs, damage) if damage else splitter.repairs,
        metadata=metadata,
        rejected=splitter.rejected,
        empty_events=splitter.empty_events,
        rejects=splitter.rejects,
    )


class _Unreadable(Exception):
    """The source failed while it was read, unlike the lake or the temporary folder."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _opened(source: Source) -> Document:
    """The document of a source; whatever opening it raises is the source's fault."""
    from pipeline.sources.document import Document

    try:
        return Document(source.fs, source.path, source.member)
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
