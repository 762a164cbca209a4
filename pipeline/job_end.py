"""Has a training job ended? What it leaves in its folder says so, or the signal to stop."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any

from pipeline.errors import SourceError
from pipeline.remote import file_system
from pipeline.settings import JOB_END
from pipeline.store.storage import storage_errors

__all__ = ["STOP_FILE_VARIABLE", "STOP_GRACE_SECONDS", "has_ended"]

STOP_FILE_VARIABLE = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
"""Names the file in the folder of a job whose text is the time of the signal, in seconds since the
epoch; a name that is a path stands for itself."""
_MILLISECONDS_FROM = 1e11
"""As seconds, more than three thousand years from now."""
STOP_GRACE_SECONDS = 60.0
"""How long after the signal the job counts as ended: what it was writing may still come."""


def has_ended(
    job: str,
    grace_seconds: float = STOP_GRACE_SECONDS,
    options: Mapping[str, Any] | None = None,
) -> bool:
    """Whether the job in a folder, or at any URL that fsspec knows, has ended.

    The signal's text is its time in seconds or milliseconds; one without any text counts from
    when it was written, one whose text is no time at once. ``options`` are arguments of the file
    system. Raises ``StorageError`` where no answer comes, ``SourceError`` for a URL that nobody
    knows.
    """
    with storage_errors(f"look for the end of the job {job}"):
        fs, root = _opened(job, options)
        root = root.rstrip("/")
        if any(fs.exists(f"{root}/{folder}/{JOB_END}") for folder in ("system", "framework")):
            return True
        name = os.environ.get(STOP_FILE_VARIABLE)
        if not name:
            return False
        signal = name if name.startswith("/") else f"{root}/{name}"
        try:
            text = fs.cat_file(signal).strip()
            told = _seconds(text) if text else fs.modified(signal).timestamp()
        except FileNotFoundError:
            return False
    return told is None or time.time() > told + grace_seconds


def _opened(job: str, options: Mapping[str, Any] | None) -> tuple[Any, str]:
    try:
        return file_system(job, options)
    except ValueError as error:
        raise SourceError(f"cannot open {job}: {error}") from error


def _seconds(text: bytes) -> float | None:
    """The time that a signal tells, in seconds since the epoch; None where it tells none."""
    try:
        told = float(text)
    except ValueError:
        return None
    if not math.isfinite(told):
        return None
    return told / 1000 if told > _MILLISECONDS_FROM else told
