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

_MOST = 1000


class Under:
    """What is under way, a call of a module or an optimizer: its start, the module or optimizer
    itself, what autograd knows of its input, and the backward passes of the calls within it.
    """

    __slots__ = ("inner", "is_optimizer", "nodes", "start", "what", "who")

    def __init__(self, what: Any, start: int, who: Any) -> None:
        self.what, self.start, self.who = what, start, who
        self.is_optimizer = what is who
        self.nodes: dict[Any, None] = {}
        self.inner: list[Pass] = []

    def hold(self, inner: list[Pass]) -> None:
        """Passes of calls within this one. The first calls have the last passes: of one that goes
        on for very long, as a trainer does that is a module, the others are not needed.
        """
        if not self.is_optimizer and len(self.inner) < _MOST:
            self.inner += inner


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
    something else happens by which it is known: ``pop``, ``forget_interrupted``.
    """

    def __init__(self, torch: Any) -> None:
        self._lock = threading.Lock()
        self._stacks = _Stacks()
        self.local = _Local(self._stacks, self._lock)
        # What calls the hooks of modules, and the wrapper in which the optimizers of PyTorch step,
        # the same whatever it wraps.
        self._of_module = getattr(torch.nn.Module._call_impl, "__code__", None)
        self._optimizer = torch.optim.Optimizer
        self._of_optimizer = self._optimizer.profile_hook_step(len).__code__

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

    def forget_interrupted(self, begins: Any = None) -> None:
        """Let go of what no longer runs in this thread, though nobody said that it ended.
        ``begins`` is a module or optimizer that runs, but is not under way yet.
        """
        stack = self.local.stack
        if stack:
            running = list(self._on_the_stack_of_python())
            _take(begins, running)
            stack[:] = [under for under in stack if self._runs(under, running)]

    def _on_the_stack_of_python(self) -> Iterator[Any]:
        """The modules and optimizers that run in this thread."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code is self._of_module:
                yield frame.f_locals.get("self")
            elif frame.f_code is self._of_optimizer:
                yield frame.f_locals["args"][0]
            frame = frame.f_back  # type: ignore[assignment]

    def _runs(self, under: Under, running: list[Any]) -> bool:
        # Of what is an optimizer in all but its class no frame is known.
        is_other = under.is_optimizer and not isinstance(under.who, self._optimizer)
        return is_other or _take(under.who, running)


def _take(who: Any, running: list[Any]) -> bool:
    """Take it out of what runs, once, if it is there."""
    for at, each in enumerate(running):
        if each is who:
            del running[at]
            return True
    return False
