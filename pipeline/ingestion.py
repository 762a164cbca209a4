"""Ingests trace files into a lake: discover, read in batches, write, commit each batch.

A batch is one large file, or many small ones; it is the unit that becomes visible at once, and
that is lost when the process is killed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from pipeline.batch import BatchResult, Gone, commit_batches, commit_unreadable, write_batch
from pipeline.errors import SourceError
from pipeline.sources import EVERYTHING, Discovery, Listing, Skipped, Source, discover
from pipeline.sqlfiles import run_sql
from pipeline.store.layout import LakePath
from pipeline.store.marker import LEDGER_VIEWS, open_lake
from pipeline.store.storage import is_there, lake_path

if TYPE_CHECKING:
    from pipeline.store.lake import Store

__all__ = [
    "IngestReport",
    "Prepared",
    "ingest",
    "plan",
    "plan_batches",
    "prepare",
    "read_prepared",
]

_BATCH_BYTES = 64 << 20
_BATCH_FILES = 1000

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the name of the last one."""


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did. ``bytes`` is the size of the files as stored, in bytes; ``let_go`` are
    runs whose files were left alone because retention let go of them.
    """

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
    let_go: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()

    def plus(self, result: BatchResult | IngestReport) -> IngestReport:
        """The report with what batches, or another ingest, brought."""
        formats = dict(self.files_by_format)
        for name, count in result.files_by_format.items():
            formats[name] = formats.get(name, 0) + count
        return replace(
            self,
            files=self.files + result.files,
            files_by_format=dict(sorted(formats.items())),
            events=self.events + result.events,
            metrics=self.metrics + result.metrics,
            rejected=self.rejected + result.rejected,
            bytes=self.bytes + result.bytes,
            written_bytes=self.written_bytes + result.written_bytes,
            failed=self.failed + result.failed,
        )

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
    job_ended: bool = False,
) -> Discovery:
    """What ``ingest`` would read, and what it would skip and why. Writes nothing."""
    place = lake_path(lake, storage_options)
    held = _held_files(place) if is_there(place) else _Held()
    listing = Listing(job_ended=job_ended)
    return _discover(sources, run, format, storage_options, held, listing)


def ingest(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    run: str | None = None,
    *,
    format: str | None = None,
    workers: int = 1,
    storage_options: Mapping[str, Any] | None = None,
    late_hours: float | None = None,
    job_ended: bool = False,
    progress: Progress | None = None,
) -> IngestReport:
    """Read trace files into a lake; only what is new or has changed since.

    ``sources`` are files, folders, globs or URLs that fsspec opens; ``run`` and ``format``
    override what their names say; ``workers`` is how many processes read. ``late_hours`` saves
    listing hours of a bucket again that are that much older than the newest. ``job_ended`` takes
    files that are still open (``.tmp``), as of a job that was killed. A file that cannot be read
    never stops the others: it is in ``failed`` and in the ledger.

    Raises ``SourceError`` where there is nothing to read, ``LakeError`` and ``StorageError`` where
    the lake cannot be used or written.
    """
    started = time.perf_counter()
    prepared = prepare(
        sources,
        lake,
        run,
        format=format,
        storage_options=storage_options,
        listing=Listing(late_hours, job_ended=job_ended),
    )
    report = read_prepared(prepared, workers, progress)
    return replace(report, seconds=round(time.perf_counter() - started, 3))


@dataclass(frozen=True)
class Prepared:
    """A lake that is there, and what is to be read into it: ``batches`` groups ``sources``.

    ``latest`` is the highest version in the ledger; ``report`` knows what was left out. ``gone``
    are files that were read while they were open and have got another name since: they are to be
    hidden with the first commit.
    """

    place: LakePath
    sources: tuple[Source, ...]
    latest: int
    report: IngestReport
    gone: tuple[Gone, ...] = ()

    @property
    def batches(self) -> list[list[Source]]:
        """About 64 MB as stored each, at most 1,000 files, a run after the other."""
        return list(plan_batches(self.sources))


def prepare(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    run: str | None = None,
    *,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    listing: Listing = EVERYTHING,
    store: Store | None = None,
) -> Prepared:
    """Find what is new for a lake; the lake is made where there is something for it.

    Arguments and errors as of ``ingest``. Files that cannot be opened are in the ledger then.
    ``store`` is the lake where it is open already, which saves opening it.
    """
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    place = lake_path(lake, storage_options)
    names = [os.fspath(source) for source in given]
    if not names:
        raise SourceError("nothing to ingest: name a file, a folder or a URL")
    # A lake is made only once there is something to put into it.
    is_new = not is_there(place)
    held = _Held()
    if not is_new:
        open_lake(place)
        held = _held_files(place) if store is None else store.reading(lambda: _held_in(store))
    found = _discover(names, run, format, storage_options, held, listing)
    if not (found.sources or found.unchanged or found.failed or found.gone):
        left = (*found.refused, *found.skipped)
        reasons = "; ".join(f"{skip.uri}: {skip.reason}" for skip in left[:3])
        raise SourceError(f"no trace to ingest in {', '.join(names)} ({reasons or 'empty'})")
    if is_new:
        open_lake(place, create=True)
    if found.failed:
        commit_unreadable(place, found.failed, held.latest)
    failed = tuple(Skipped(bad.source.uri, bad.reason) for bad in found.failed)
    named = tuple(Skipped(skip.uri, f"{skip.uri}: {skip.reason}") for skip in found.refused)
    report = IngestReport(
        lake=os.fspath(lake),
        unchanged=found.unchanged,
        skipped=found.skipped,
        failed=(*failed, *named),
        runs=tuple(sorted({source.run for source in found.sources})),
        let_go=tuple(sorted(held.left)),
    )
    gone = tuple(Gone(uri, held.run_of(uri), held.latest) for uri in found.gone)
    return Prepared(place, found.sources, held.latest, report, gone)


def read_prepared(
    prepared: Prepared, workers: int = 1, progress: Progress | None = None
) -> IngestReport:
    """Read what was found; each batch is committed when it is read. Errors as of ``ingest``."""
    report = prepared.report
    known = len(report.failed)
    for result in _read_batches(prepared, workers):
        report = report.plus(result)
        if progress is not None:
            done = report.files + len(report.failed) - known
            progress(done, len(prepared.sources), result.last)
    return report


def _discover(
    sources: Iterable[str],
    run: str | None,
    format: str | None,
    options: Mapping[str, Any] | None,
    held: _Held,
    listing: Listing = EVERYTHING,
) -> Discovery:
    def known(uri: str, fingerprint: str, run_name: str) -> bool:
        if not listing.retry_failed and held.failed.get(uri) == fingerprint:
            return True
        now = held.files.get(uri)
        is_known = now is not None and now == _File(fingerprint, run_name, format or now.format)
        if is_known and uri in held.let_go:
            held.left.add(run_name)
        return is_known

    return discover(
        sources,
        run=run,
        format=format,
        storage_options=options,
        known=known,
        known_uris=[uri for uri, now in held.files.items() if run in (None, now.run)],
        failed_uris=held.failed.keys(),
        listing=listing,
    )


@dataclass(frozen=True)
class _File:
    """What the lake holds of a file."""

    fingerprint: str
    run: str
    format: str


@dataclass(frozen=True)
class _Held:
    """What the lake holds, or held until retention let go of it (``let_go``): each file, the
    fingerprints of those that could not be read, and the latest version. ``left`` are the runs
    that were let go of and are found to be there still.
    """

    files: dict[str, _File] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    latest: int = 0
    let_go: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)

    def run_of(self, uri: str) -> str:
        """The run of a file that the lake holds; of one that failed it is not known."""
        return self.files[uri].run if uri in self.files else ""


def _held_files(place: LakePath) -> _Held:
    from pipeline.store.lake import Store

    with Store(place, LEDGER_VIEWS) as store:
        return _held_in(store)


def _held_in(store: Store) -> _Held:
    rows = run_sql(store.connection, "queries/known_files").fetchall()
    failed = run_sql(store.connection, "queries/failed_files").fetchall()
    ((latest,),) = run_sql(store.connection, "queries/latest_version").fetchall()
    files = {uri: _File(*rest) for uri, *rest, _ in rows}
    let_go = {uri for uri, *_, is_let_go in rows if is_let_go}
    return _Held(files, dict(failed), latest, let_go)


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


def _read_batches(prepared: Prepared, workers: int) -> Iterator[BatchResult]:
    batches = prepared.batches
    place, latest = prepared.place, prepared.latest
    if prepared.gone and not batches:
        commit_batches(place, [], prepared.gone)
    # What is gone is hidden with the first: its events may come again in any of them.
    gone = [prepared.gone, *[()] * len(batches)]
    if workers <= 1 or len(batches) <= 1:
        for batch, hidden in zip(batches, gone, strict=False):
            yield _ingest_batch(place, batch, latest, hidden)
        return
    with ProcessPoolExecutor(min(workers, len(batches)), mp_context=get_context("spawn")) as pool:
        futures: list[Future[BatchResult]] = [
            pool.submit(_ingest_batch, place, batch, latest, hidden)
            for batch, hidden in zip(batches, gone, strict=False)
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _ingest_batch(
    place: LakePath, batch: Sequence[Source], latest: int, gone: Sequence[Gone]
) -> BatchResult:
    return commit_batches(place, [write_batch(place, batch, latest)], gone)
