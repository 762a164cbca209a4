"""tracelake: raw profiler traces and system metrics become a Parquet lake that answers SQL.

The names below are loaded when they are first used, so that ``import pipeline`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.ingestion import IngestReport as IngestReport
    from pipeline.ingestion import ingest as ingest
    from pipeline.query.run import Run as Run
    from pipeline.store.lake import Store as Store

__all__ = ["IngestReport", "Run", "Store", "__version__", "ingest"]
__version__ = "0.1.0"

_HOMES = {
    "IngestReport": "pipeline.ingestion",
    "ingest": "pipeline.ingestion",
    "Run": "pipeline.query.run",
    "Store": "pipeline.store.lake",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
