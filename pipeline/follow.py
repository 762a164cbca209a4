"""Follows a job that is still being written: ingests what appears, until the job has ended.

The last look is a full one: it lists everything and takes the files that are still open, so that
the lake is what one ingest of the finished job gives.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import NoMoreProfilerData, SourceError, StorageError
from pipeline.ingestion import IngestReport, Prepared, prepare, read_prepared
from pipeline.job_end import STOP_GRACE_SECONDS, has_ended
from pipeline.sources import Listing
from pipeline.sqlfiles import run_sql
from pipeline.store.lake import Store
from pipeline.store.marker import LEDGER_VIEWS
from pipeline.store.storage import is_there, lake_path

__all__ = ["JobFollower"]

_LOGGER = logging.getLogger(__name__)


@dataclass
class JobFollower:
    """A job at a path or URL, and the lake that it is ingested into.

    ``poll_seconds`` lie between two looks. A file that changed less than ``settle_seconds`` ago
    waits for the next look. The job has ended when it leaves ``training_job_end.ts``, or
    ``grace_seconds`` after the signal to stop. ``late_hours`` as of ``ingest``; the last look
    lists everything. Once a look has succeeded, a storage that fails is waited for, for
    ``patience_seconds``. ``ingest`` does the reading, by default here and now; ``tell`` gets a
    line when what is waited for changes, by default into the log.
    """

    source: str
    lake: str | os.PathLike[str]
    run: str | None = None
    poll_seconds: float = 10.0
    settle_seconds: float = 2.0
    grace_seconds: float = STOP_GRACE_SECONDS
    patience_seconds: float = 300.0
    late_hours: float | None = 1.0
    storage_options: Mapping[str, Any] | None = None
    ingest: Callable[[Prepared], IngestReport] = field(default=lambda p: read_prepared(p))
    tell: Callable[[str], object] = _LOGGER.info
    ended: bool = field(default=False, init=False)
    _told: str = field(default="", init=False)
    _reached: float | None = field(default=None, init=False)

    def look(self) -> IngestReport | None:
        """Ingest what is there now; None where there is nothing yet.

        ``ended`` says afterwards whether the job had ended before this look, which then was the
        last one that is needed. Raises ``StorageError`` where the storage fails.
        """
        # Asked first: what was written before the end is seen by the listing that follows.
        ended = has_ended(self.source, self.grace_seconds, self.storage_options)
        listing = Listing(self.late_hours, self.settle_seconds, retry_failed=False)
        if ended:
            listing = Listing(job_ended=True)
        try:
            prepared = prepare(
                self.source,
                self.lake,
                self.run,
                storage_options=self.storage_options,
                listing=listing,
            )
        except SourceError:
            self.ended = ended
            self._tell(f"waiting for data at {self.source}")
            return None
        self._tell("")
        report = self.ingest(prepared)
        self.ended = ended
        return report

    def follow(self, seen: Callable[[IngestReport], object] = lambda report: None) -> None:
        """Look until the job has ended; ``seen`` gets every report that brought something."""
        while True:
            report = self._look_patiently()
            if report is not None and (report.files or report.failed):
                seen(report)
            if self.ended:
                return
            time.sleep(self.poll_seconds)

    def _look_patiently(self) -> IngestReport | None:
        """``look``; None where the storage fails and has not done so for too long."""
        try:
            report = self.look()
        except StorageError as error:
            if self._reached is None or time.monotonic() - self._reached > self.patience_seconds:
                raise
            self._tell(f"waiting for the storage, at most {self.patience_seconds:g} s: {error}")
            return None
        self._reached = time.monotonic()
        return report

    def _tell(self, line: str) -> None:
        """Say what is waited for, once as long as it is the same."""
        if line and line != self._told:
            self.tell(line)
        self._told = line

    def latest(self) -> int | None:
        """Up to which time there is data, in nanoseconds since the epoch; None without any.

        That is the earlier of what traces and system metrics reach; of the one where the other is
        not there.
        """
        place = lake_path(self.lake, self.storage_options)
        if not is_there(place):
            return None
        with Store(place, LEDGER_VIEWS) as store:
            reached = run_sql(store.connection, "queries/reached", {"run": self.run}).fetchone()
        return None if reached is None else reached[0]

    def wait_until(self, time_ns: int) -> int:
        """Look until there is data up to a time; gives the time that is reached.

        Raises ``NoMoreProfilerData`` where the job ends before.
        """
        while True:
            self._look_patiently()
            latest = self.latest()
            if latest is not None and latest >= time_ns:
                return latest
            if self.ended:
                raise NoMoreProfilerData(time_ns)
            time.sleep(self.poll_seconds)
