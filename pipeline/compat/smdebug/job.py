"""A folder of raw traces with a lake behind it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceError
from pipeline.ingestion import prepare, read_prepared
from pipeline.query.run import Run
from pipeline.query.window import one_or_more
from pipeline.spill import spill_folder
from pipeline.sqlfiles import quote_identifier, sql_text
from pipeline.store.lake import Store
from pipeline.store.marker import open_lake
from pipeline.store.storage import lake_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Job", "file_alone", "job_of"]

_LOCK = threading.RLock()
"""Jobs are made and refreshed by one thread at a time."""
_NUMBERS = count(1)
_LATE_US = 180_000_000
_KEPT = 16
"""Lakes of so many paths stay for the next reader of the path; others go with their readers."""


class Job:
    """The traces at a path or URL, and what the lake knows of them. Get one with ``job_of``."""

    def __init__(self, path: str, form: str | None = None, store: Store | None = None) -> None:
        self.path = path
        self._format = form
        self.run = Run(_new_store(self) if store is None else store, f"job-{next(_NUMBERS)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return job_of, (self.path,)

    def read(self) -> None:
        """Read the files that are new or have changed.

        Raises ``SourceError`` where there are none or one cannot be read.
        """
        with _LOCK:
            store, form = self.run.store, self._format
            lake = store.lake.root
            prepared = prepare(self.path, lake, self.run.name, format=form, store=store)
            report = read_prepared(prepared)
        if report.failed:
            raise SourceError("; ".join(bad.reason for bad in report.failed[:3]))

    def refresh(self) -> None:
        """See the files that are new or have changed. A folder without any is no error."""
        with suppress(SourceError):
            self.read()

    def look_again(self, end: int | None, is_system: bool) -> None:
        """See new files where a range that ends at ``end`` (nanoseconds, None for no end) comes
        near the newest file or goes beyond it, since only there they are of interest.
        """
        times = self.file_times(is_system)
        if end is None or not times or end // 1000 + _LATE_US >= times[-1]:
            self.refresh()

    def framework_events(
        self,
        columns: Sequence[str],
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] | None = None,
        uris: Sequence[str] | None = None,
        steps: tuple[int, int] | tuple[None, None] = (None, None),
    ) -> pa.Table:
        """Finished slices; columns and parameters as in ``sql/compat/framework_events.sql``."""
        self.look_again(end, is_system=False)
        first_step, last_step = steps
        return self._rows(
            "framework_events",
            columns,
            **{"from": start, "until": end, "clock": self._clock()},
            first_step=first_step,
            last_step=last_step,
            selected=one_or_more(selected),
            uris=one_or_more(uris),
        )

    def system_events(
        self,
        columns: Sequence[str],
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] | None = None,
        type: str | None = None,
        uris: Sequence[str] | None = None,
    ) -> pa.Table:
        """Samples; columns and parameters as in ``sql/compat/system_events.sql``."""
        self.look_again(end, is_system=True)
        return self._rows(
            "system_events",
            columns,
            **{"from": start, "until": end, "clock": self._clock()},
            selected=one_or_more(selected),
            type=type,
            uris=one_or_more(uris),
        )

    def framework_names(self) -> list[str]:
        """The names of framework events and of their processes, each once."""
        self.look_again(None, is_system=False)
        rows = self._rows("framework_names", ["name"], clock=self._clock())
        names: list[str] = rows[0].to_pylist()
        return names

    def file_times(self, is_system: bool) -> list[int]:
        """Times of the files in microseconds, ascending, as in ``sql/compat/file_times.sql``."""
        times: list[int] = self._rows("file_times", ["time_us"], is_system=is_system)[
            0
        ].to_pylist()
        return times

    def step_starts(self, first: int, until: int) -> tuple[int | None, int | None]:
        """Microseconds of the first events of two steps, each None where there is none."""
        steps = {"first": first, "until": until, "clock": self._clock()}
        (row,) = self._rows("step_starts", ["first_ns", "until_ns"], **steps).to_pylist()
        first_us, until_us = (None if ns is None else ns // 1000 for ns in row.values())
        return first_us, until_us

    def _clock(self) -> str:
        """Files without a base count only where there are no others, as they always did."""
        clocks = self.run.store.sql(sql_text("queries/run_clocks"), {"run": self.run.name})[
            "clock"
        ]
        return "trace" if len(clocks) and "epoch" not in clocks else "epoch"

    def _rows(self, query: str, columns: Sequence[str], **params: Any) -> pa.Table:
        """Columns of a query; those that are left out are not made at all."""
        given = {"run": self.run.name, **params}

        def run() -> pa.Table:
            relation = self.run.store.connection.sql(sql_text(f"compat/{query}"), params=given)
            return relation.project(*map(quote_identifier, columns)).to_arrow_table()

        return self.run.store.reading(run)


def job_of(path: str) -> Job:
    """The job at a path as it is now, one for all readers and frames of a process."""
    where = path if "://" in path else str(Path(path).expanduser().absolute())
    with _LOCK:
        job = _job_at(where)
        job.refresh()
    return job


def file_alone(path: str, form: str | None) -> Job:
    """What is in one file. Such files share a lake, which takes long to make.

    Errors as of ``Job.read``.
    """
    with _LOCK:
        job = Job(path, form, _store_of_files())
        job.read()
    return job


@lru_cache(maxsize=_KEPT)
def _job_at(path: str) -> Job:
    return Job(path)


@cache
def _store_of_files() -> Store:
    return _new_store(_store_of_files)


def _new_store(owner: object) -> Store:
    """An empty lake in a temporary folder, which goes with its owner or with the process: the
    traces themselves stay what is kept.
    """
    with ExitStack() as stack:
        lake = str(Path(stack.enter_context(spill_folder())) / "lake")
        open_lake(lake_path(lake), create=True)
        store = Store.open(lake)
        stack.callback(store.close)
        weakref.finalize(owner, stack.pop_all().close)
    return store
