"""How much of the machine DuckDB may use; environment variables override.

``TRACELAKE_THREADS``: threads, by default the cores this process may run on.
``TRACELAKE_QUERY_MEMORY``: for queries, by default ``4GB``.
``TRACELAKE_INGEST_MEMORY``: for one ingesting process, by default ``500MB``; the process as a
whole takes about twice that.
"""

from __future__ import annotations

import os

__all__ = ["ingest_memory", "query_memory", "threads"]


def threads() -> int:
    """Threads for DuckDB."""
    given = os.environ.get("TRACELAKE_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def query_memory() -> str:
    """Memory for queries, as DuckDB writes it."""
    return os.environ.get("TRACELAKE_QUERY_MEMORY", "4GB")


def ingest_memory() -> str:
    """Memory for one ingesting process, as DuckDB writes it."""
    return os.environ.get("TRACELAKE_INGEST_MEMORY", "500MB")
