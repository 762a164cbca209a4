"""A folder of raw traces with a lake behind it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceError
from pipeline.ingestion import ingest
from pipeline.query.run import Run
from pipeline.query.window import one_or_more
from pipeline.sqlfiles import quote_identifier, sql_text
from pipeline.store.lake import Store
from pipeline.store.marker import open_lake
from pipeline.store.storage import lake_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Job", "job_of"]

_RUN = "job"
_LOCK = threading.RLock()
"""Jobs are made and refreshed by one thread at a time."""


class Job:
    """The traces at a path or URL, and what the lake knows of them. Get one with ``job_of``."""

    def __init__(self, path: str, form: str | None = None) -> None:
        self.path = path
        self._format = form
        # Gone with the process: the traces themselves stay what is kept.
        self._folder = tempfile.TemporaryDirectory(prefix="tracelake-smdebug-")
        self._lake = str(Path(self._folder.name) / "lake")
        open_lake(lake_path(self._lake), create=True)
        self.run = Run(Store.open(self._lake), _RUN)

    def refresh(self) -> None:
        """See the files that are new or have changed. A folder without any is no error."""
        with _LOCK, suppress(SourceError):
            ingest(self.path, self._lake, _RUN, format=self._format)

    def framework_events(
        self,
        columns: Sequence[str],
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] = (),
        patterns: Sequence[str] = (),
        uris: Sequence[str] | None = None,
        steps: tuple[int, int] | tuple[None, None] = (None, None),
    ) -> pa.Table:
        """Finished slices; columns and parameters as in ``sql/compat/framework_events.sql``."""
        first_step, last_step = steps
        return self._rows(
            "framework_events",
            columns,
            **{"from": start, "until": end, "clock": self._clock()},
            first_step=first_step,
            last_step=last_step,
            selected=one_or_more(selected) or None,
            patterns=one_or_more(patterns) or None,
            uris=one_or_more(uris),
        )

    def system_events(
        self,
        columns: Sequence[str],
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] = (),
        type: str | None = None,
    ) -> pa.Table:
        """Samples; columns and parameters as in ``sql/compat/system_events.sql``."""
        return self._rows(
            "system_events",
            columns,
            **{"from": start, "until": end, "clock": self._clock()},
            selected=one_or_more(selected) or None,
            type=type,
        )

    def file_times(self, is_system: bool) -> list[int]:
        """Times in the names of the files, in microseconds, ascending."""
        times: list[int] = self._rows("file_times", ["time_us"], is_system=is_system)[
            0
        ].to_pylist()
        return times

    def _clock(self) -> str:
        """Files without a base count only where there are no others, as they always did."""
        clocks = self.run.store.sql(sql_text("queries/run_clocks"), {"run": _RUN})["clock"]
        return "trace" if len(clocks) and "epoch" not in clocks else "epoch"

    def _rows(self, query: str, columns: Sequence[str], **params: Any) -> pa.Table:
        """Columns of a query; those that are left out are not made at all."""
        given = {"run": _RUN, **params}

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


@cache
def _job_at(path: str) -> Job:
    return Job(path)
