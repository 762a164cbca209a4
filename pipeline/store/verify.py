"""Recounts the ledger against the Parquet."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.sqlfiles import sql_text
from pipeline.store.lake import Store

__all__ = ["Difference", "verify"]


@dataclass(frozen=True)
class Difference:
    """A number that the ledger and the Parquet do not agree on."""

    uri: str
    what: str
    ledger: int | None
    parquet: int | None

    def __str__(self) -> str:
        return f"{self.uri}: {self.what}: ledger {self.ledger}, parquet {self.parquet}"


def verify(store: Store) -> list[Difference]:
    """All differences between the ledger and the data files; none in a sound lake."""
    return [Difference(*row) for row in store.sql(sql_text("queries/verify")).rows()]
