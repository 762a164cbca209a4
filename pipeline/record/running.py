"""What is under way in each thread: the calls of modules and the optimizers within each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from pipeline.record.backward import Pass
from pipeline.record.watched import Call

__all__ = ["Running", "Under"]


class Under:
    """What is under way, a call or an optimizer: its start, what autograd knows of its input, and
    the backward passes of the calls within it.
    """

    __slots__ = ("inner", "is_optimizer", "nodes", "start", "what")

    def __init__(self, what: Any, start: int, is_optimizer: bool = False) -> None:
        self.what, self.start, self.is_optimizer = what, start, is_optimizer
        self.nodes: dict[Any, None] = {}
        self.inner: list[Pass] = []


class _Stack(list[Under]):
    """A list that knows nobody holds it."""

    __slots__ = ("__weakref__",)


_Stacks = WeakValueDictionary[int, _Stack]


class _Local(threading.local):
    """The stack of a thread, which all threads can look into."""

    def __init__(self, stacks: _Stacks, lock: threading.Lock) -> None:
        self.stack = _Stack()
        with lock:
            stacks[threading.get_ident()] = self.stack


class Running:
    """What is under way in this thread is ``local.stack``, the innermost last.

    What an exception or an interrupt ended is not told to all hooks, and stays there until
    ``forget_interrupted``.
    """

    def __init__(self, torch: Any) -> None:
        self._lock = threading.Lock()
        self._stacks = _Stacks()
        self.local = _Local(self._stacks, self._lock)
        self._of_module = torch.nn.Module._call_impl.__code__  # which calls the hooks
        # All optimizers step in the same wrapper.
        self._of_optimizer = torch.optim.Optimizer.profile_hook_step(len).__code__

    def pop(self, what: Any) -> Under | None:
        """What ends now; whatever began within it and has not ended never will."""
        stack = self.local.stack
        if stack and stack[-1].what is what:
            return stack.pop()
        for at in range(len(stack) - 1, -1, -1):
            if stack[at].what is what:
                found = stack[at]
                del stack[at:]
                return found
        return None

    def around(self, call: Call) -> Under | None:
        """What a call is within that is the first in its thread: the innermost of other threads
        that holds its module, as where a model runs its replicas.
        """
        with self._lock:
            stacks = list(self._stacks.values())
        under = [each for stack in stacks for each in tuple(stack) if each.what in call.within]
        return max(under, key=lambda each: each.start, default=None)

    def forget_interrupted(self) -> None:
        """Let go of what no longer runs in this thread, though nobody said that it ended."""
        stack = self.local.stack
        if stack:
            running = list(self._on_the_stack_of_python())
            stack[:] = [under for under in stack if _is_any(under, running)]

    def _on_the_stack_of_python(self) -> Iterator[Any]:
        """The modules and optimizers that run in this thread."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code is self._of_module:
                yield frame.f_locals["self"]
            elif frame.f_code is self._of_optimizer:
                yield frame.f_locals["args"][0]
            frame = frame.f_back  # type: ignore[assignment]


def _is_any(under: Under, running: list[Any]) -> bool:
    own = under.what if under.is_optimizer else under.what.module()
    return any(own is each for each in running)
