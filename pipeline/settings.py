"""How much of the machine DuckDB may use, and what makes a folder a lake.

Environment variables override:

``TRACELAKE_THREADS``: threads, by default the cores this process may run on.
``TRACELAKE_QUERY_MEMORY``: for queries, by default ``4GB``.
``TRACELAKE_INGEST_MEMORY``: for one ingesting process, by default ``400MB``; the process as a
whole takes about twice that.

All raise ``UsageError`` where a variable holds something else.
"""

from __future__ import annotations

import os
import re

from pipeline.errors import UsageError

__all__ = ["JOB_END", "MARKER", "ingest_memory", "query_memory", "threads"]

MARKER = "tracelake.json"
"""The file that makes a folder a lake."""

JOB_END = "training_job_end.ts"
"""The file under ``system/`` or ``framework/`` of a job that has ended."""

_SIZE = re.compile(r"[0-9]+(\.[0-9]+)? ?([KMGT]i?)?B", re.IGNORECASE)


def threads() -> int:
    """Threads for DuckDB."""
    given = os.environ.get("TRACELAKE_THREADS", "")
    if given:
        if not given.isdecimal() or int(given) == 0:
            raise UsageError(f"TRACELAKE_THREADS is {given!r}: give a whole number from 1 on")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def query_memory() -> str:
    """Memory for queries, as DuckDB writes it."""
    return _memory("TRACELAKE_QUERY_MEMORY", "4GB")


def ingest_memory() -> str:
    """Memory for one ingesting process, as DuckDB writes it."""
    return _memory("TRACELAKE_INGEST_MEMORY", "400MB")


def _memory(variable: str, default: str) -> str:
    given = os.environ.get(variable, "").strip() or default
    if not _SIZE.fullmatch(given):
        raise UsageError(f"{variable} is {given!r}: give a size such as 500MB or 4GB")
    return given
