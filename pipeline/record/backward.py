"""When the backward pass of each module began and ended, told by the nodes of autograd's graph.

Hooks of modules themselves (``register_full_backward_hook``) forbid to change their output in
place, as many models do. Nodes do not care: the pass of a module begins with the node that made
its output, and ends with the one that made its input.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any
from weakref import WeakSet

from pipeline.record.faults import Faults

__all__ = ["Backward", "nodes_of"]

Write = Callable[[str, int, int], object]
"""Gets the name of a module, and start and end in nanoseconds."""


def nodes_of(value: Any) -> Iterable[Any]:
    """The nodes of autograd's graph behind the tensors in what a module takes or gives."""
    if isinstance(value, dict):
        value = value.values()
    elif getattr(value, "grad_fn", None) is not None:
        yield value.grad_fn
        return
    elif not isinstance(value, list | tuple):
        return
    for part in value:
        yield from nodes_of(part)


class _Pass:
    """The backward pass of one call of a module."""

    __slots__ = ("name", "parameters", "start")

    def __init__(self, name: str, parameters: tuple[Any, ...]) -> None:
        self.name = name
        self.parameters = parameters
        self.start: int | None = None


class Backward:
    """Watches calls of modules; ``write`` gets each backward pass when it has ended.

    A module whose input needs no gradient, such as the first, has no node that ends it. Its pass
    ends when the last of its parameters has its gradient, and is written by ``finish``.
    """

    def __init__(self, write: Write, faults: Faults) -> None:
        self._write, self._faults = write, faults
        # Nodes may be watched by several of these.
        self._key = f"tracelake-{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._running: dict[int, _Pass] = {}
        self._reached: dict[int, int] = {}  # when a parameter got its gradient, by its id
        self._awaited: WeakSet[Any] = WeakSet()
        self._handles: list[Any] = []

    def watch(self, name: str, module: Any, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """Watch the pass of a call that took what these nodes made and gave what those made."""
        outputs, inputs = set(outputs), set(inputs)
        if not outputs or outputs <= inputs:
            return
        parameters: tuple[Any, ...] = ()
        if not inputs:
            parameters = tuple(p for p in module.parameters() if p.requires_grad)
            self._await(module, parameters)
        made = _Pass(name, parameters)
        for node in outputs:
            self._hook(node)[1].append(made)
        for node in inputs:
            self._hook(node)[0].append(made)

    def finish(self) -> None:
        """The backward pass is over: write what no node has ended."""
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for made in running:
            reached = [self._reached.get(id(p), 0) for p in made.parameters]
            assert made.start is not None
            self._write(made.name, made.start, max([made.start, *reached]))

    def close(self) -> None:
        """Watch no parameter any more."""
        for handle in self._handles:
            handle.remove()

    def _await(self, module: Any, parameters: Iterable[Any]) -> None:
        """Note when the parameters of a module get their gradients, from now on."""
        if module in self._awaited:
            return
        self._awaited.add(module)

        def reached(parameter: Any) -> None:
            self._reached[id(parameter)] = perf_counter_ns()

        self._handles += [p.register_post_accumulate_grad_hook(reached) for p in parameters]

    def _hook(self, node: Any) -> tuple[list[_Pass], list[_Pass]]:
        """The passes that end and that begin with a node: at one moment, so that they touch."""
        hooked: tuple[list[_Pass], list[_Pass]] | None = node.metadata.get(self._key)
        if hooked is None:
            ending: list[_Pass] = []
            beginning: list[_Pass] = []
            hooked = node.metadata[self._key] = (ending, beginning)

            def run(_: Any) -> None:
                now = perf_counter_ns()
                with self._faults.harmless("Backward"):
                    for made in ending:
                        self._end(made, now)
                    # Of modules within each other the outer one was watched last.
                    for made in reversed(beginning):
                        self._begin(made, now)

            node.register_prehook(run)
        return hooked

    def _begin(self, made: _Pass, now: int) -> None:
        with self._lock:
            if made.start is None:
                made.start = now
                self._running[id(made)] = made

    def _end(self, made: _Pass, now: int) -> None:
        with self._lock:
            if self._running.pop(id(made), None) is None:
                return
        assert made.start is not None
        self._write(made.name, made.start, now)
