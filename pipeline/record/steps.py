"""Where a training step begins and ends, told from what the training does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

__all__ = ["Mode", "Steps"]

Mode = Literal["TRAIN", "EVAL", "GLOBAL"]
Write = Callable[[Mode, int, int, int], object]
"""Gets the mode, the number, and start and end in nanoseconds."""


class Steps:
    """Puts what happens into steps, each from its first event to its last.

    A step of training goes on until the optimizer has stepped, however often the model ran (where
    there is an optimizer: ``has_optimizer``); one of evaluation is one pass of the model. The next
    step begins with the next batch that is fetched, or the next pass. GLOBAL is a step in which no
    model ran. ``write`` gets each step when the next begins.
    """

    def __init__(self, write: Write) -> None:
        self.has_optimizer = False
        self._write = write
        self._numbers: Counter[str] = Counter()
        self._start: int | None = None
        self._end = 0
        self._mode: Mode = "GLOBAL"
        self._is_done = False

    def begin(self, now_ns: int, mode: Mode | None = None) -> None:
        """A batch is fetched, or a model begins to run in a ``mode``."""
        changes = mode is not None and self._mode not in ("GLOBAL", mode)
        if self._start is not None and (self._is_done or changes):
            self.end()
        if self._start is None:
            self._start, self._end, self._mode, self._is_done = now_ns, now_ns, "GLOBAL", False
        if mode is not None:
            self._mode = mode

    def happened(self, end_ns: int) -> None:
        """Something of the step has ended."""
        self._end = max(self._end, end_ns)

    def ran(self, end_ns: int) -> None:
        """The model has run."""
        self.happened(end_ns)
        self._is_done = self._mode != "TRAIN" or not self.has_optimizer

    def stepped(self, end_ns: int) -> None:
        """The optimizer has stepped."""
        self.happened(end_ns)
        self._is_done = True

    def end(self) -> None:
        """The step is over, if there is one."""
        if self._start is not None:
            self._write(self._mode, self._numbers[self._mode], self._start, self._end)
            self._numbers[self._mode] += 1
            self._start = None
