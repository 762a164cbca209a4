"""A folder of raw traces with a lake behind it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceError
from pipeline.ingestion import ingest
from pipeline.query.run import Run
from pipeline.query.window import one_or_more
from pipeline.sqlfiles import sql_text
from pipeline.store.lake import Store
from pipeline.store.marker import open_lake
from pipeline.store.storage import lake_path

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Job", "job_of"]

_RUN = "job"


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
        try:
            ingest(self.path, self._lake, _RUN, format=self._format)
        except SourceError:
            return

    def framework_events(
        self,
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] = (),
        patterns: Sequence[str] = (),
        uris: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Finished slices; columns and parameters as in ``sql/compat/framework_events.sql``."""
        return self._rows(
            "framework_events",
            **{"from": start, "until": end, "clock": self._clock()},
            selected=list(selected) or None,
            patterns=list(patterns) or None,
            uris=one_or_more(uris),
        )

    def system_events(
        self,
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] = (),
        type: str | None = None,
    ) -> pl.DataFrame:
        """Samples; columns and parameters as in ``sql/compat/system_events.sql``."""
        return self._rows(
            "system_events",
            **{"from": start, "until": end, "clock": self._clock()},
            selected=list(selected) or None,
            type=type,
        )

    def file_times(self, is_system: bool) -> list[int]:
        """Times in the names of the files, in microseconds, ascending."""
        return self._rows("file_times", is_system=is_system)["time_us"].to_list()

    def _clock(self) -> str:
        """Files without a base count only where there are no others, as they always did."""
        clocks = self.run.store.sql(sql_text("queries/run_clocks"), {"run": _RUN})["clock"]
        return "trace" if len(clocks) and "epoch" not in clocks else "epoch"

    def _rows(self, query: str, **params: Any) -> pl.DataFrame:
        return self.run.store.sql(sql_text(f"compat/{query}"), {"run": _RUN, **params})


@cache
def job_of(path: str) -> Job:
    """The job at a path, one for all readers and frames of a process."""
    job = Job(path)
    job.refresh()
    return job
