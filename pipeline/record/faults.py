"""What fails in a recording is told once and left out: it must not end the training."""

from __future__ import annotations

import logging
from types import TracebackType

__all__ = ["Faults"]

_LOGGER = logging.getLogger(__name__)


class Faults:
    """The faults of a recording, by what failed. Each is logged the first time it comes."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def harmless(self, name: str) -> _Harmless:
        """A context in which nothing raises: what would is told as the fault of ``name``."""
        return _Harmless(self, name)

    def tell(self, name: str, error: BaseException) -> None:
        """Log a fault, if it is the first of its name."""
        if name not in self._told:
            self._told.add(name)
            _LOGGER.warning("recording: %s fails and is left out while it does: %s", name, error)


class _Harmless:
    # A generator would cost more than what it guards: every batch of a training enters this.
    __slots__ = ("_faults", "_name")

    def __init__(self, faults: Faults, name: str) -> None:
        self._faults, self._name = faults, name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        # An interrupt is no fault, and goes on.
        if not isinstance(error, Exception):
            return False
        self._faults.tell(self._name, error)
        return True
