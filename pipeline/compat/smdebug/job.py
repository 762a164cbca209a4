"""A folder of raw traces with a lake behind it."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceError
from pipeline.ingestion import ingest
from pipeline.query.run import Run
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

    def __init__(self, path: str) -> None:
        self.path = path
        # Gone with the process: the traces themselves stay what is kept.
        self._folder = tempfile.TemporaryDirectory(prefix="tracelake-smdebug-")
        self._lake = str(Path(self._folder.name) / "lake")
        open_lake(lake_path(self._lake), create=True)
        self.run = Run(Store.open(self._lake), _RUN)

    def refresh(self) -> None:
        """See the files that are new or have changed. A folder without any is no error."""
        try:
            ingest(self.path, self._lake, _RUN)
        except SourceError:
            return

    def rows(self, query: str, **params: Any) -> pl.DataFrame:
        """The rows of a file of ``sql/compat``."""
        return self.run.store.sql(sql_text(f"compat/{query}"), {"run": _RUN, **params})


@cache
def job_of(path: str) -> Job:
    """The job at a path, one for all readers and frames of a process."""
    job = Job(path)
    job.refresh()
    return job
