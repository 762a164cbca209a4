"""One run of the lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.sqlfiles import sql_text

if TYPE_CHECKING:
    import polars as pl

    from pipeline.store.lake import Store

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """A training job in the lake; make one with ``Store.run``."""

    store: Store
    name: str

    def sources(self) -> pl.DataFrame:
        """The files of the run; columns as in the view ``sources``."""
        return self.store.sql("SELECT * FROM sources WHERE run = $run ORDER BY uri", self._run)

    def events(self) -> pl.DataFrame:
        """All events of the run by start; columns as in the view ``events``."""
        return self.store.sql(sql_text("queries/run_events"), self._run)

    def metrics(self) -> pl.DataFrame:
        """All samples of the run by time; columns as in the view ``metrics``."""
        return self.store.sql(sql_text("queries/run_metrics"), self._run)

    @property
    def _run(self) -> dict[str, str]:
        return {"run": self.name}
