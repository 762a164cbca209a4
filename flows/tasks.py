"""What all tasks have in common: they are tried again where the storage failed, and only there."""

from __future__ import annotations

from typing import Any

from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun
from prefect.tasks import exponential_backoff

from pipeline.errors import StorageError

__all__ = ["STORAGE_TASK"]


def _storage_failed(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether another try may help: not where a file or an argument is what is wrong."""
    result = state.result(raise_on_failure=False)
    return isinstance(result, StorageError)


STORAGE_TASK: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": exponential_backoff(backoff_factor=2),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": _storage_failed,
    # The lake alone knows what is done: a stored result would know it twice.
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
"""Arguments of ``prefect.task``."""
