"""When the backward pass of each module began and ended, told by the nodes of autograd's graph.

Hooks of modules themselves (``register_full_backward_hook``) forbid to change their output in
place, as many models do. Nodes do not care: the pass of a module begins with the node that made
its output, and ends with the one that made its input.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from pipeline.extras import extra
from pipeline.record.faults import Faults

__all__ = ["Backward", "Pass", "add_nodes"]

Write = Callable[[str, int, int], object]
"""Gets the name of a module, and start and end in nanoseconds."""


def add_nodes(value: Any, nodes: list[Any]) -> None:
    """Add the nodes of autograd's graph behind the tensors in what a module takes or gives."""
    node = getattr(value, "grad_fn", None)
    if node is not None:
        if node not in nodes:
            nodes.append(node)
    elif isinstance(value, list | tuple):
        for part in value:
            add_nodes(part, nodes)
    elif isinstance(value, dict):
        for part in value.values():
            add_nodes(part, nodes)
    elif hasattr(value, "__dataclass_fields__"):
        add_nodes(vars(value), nodes)


class Pass:
    """The backward pass of one call of a module. It holds no node: nodes hold it."""

    __slots__ = ("after", "ends", "graph", "inner", "last", "name", "start", "waits")

    def __init__(self, name: str, inner: Sequence[Pass]) -> None:
        self.name = name
        self.inner = inner  # passes of calls within that call
        self.ends = 1  # how many nodes end it
        self.graph: int | None = None  # the run of autograd that it began in
        self.begin(0)

    def begin(self, now: int) -> None:
        """It begins, maybe again."""
        self.start = now
        self.last = 0  # when one of the nodes that end it did
        self.after = 0  # when the next node of any module came
        self.waits = self.ends  # for so many nodes


class Backward:
    """Watches calls of modules; ``write`` gets each backward pass when it has ended.

    The input of a module may need no gradient, such as that of the first. Then the pass ends with
    the last node of its own; that of a module of modules with the last of theirs. That of a module
    that cuts off its input ends where the next begins, or all is over.
    """

    def __init__(self, write: Write, faults: Faults) -> None:
        torch = extra("torch", "torch")
        # By which PyTorch's own wrappers for distributed training know the end, too.
        self._at_end = torch.autograd.Variable._execution_engine.queue_callback
        self._graph: Callable[[], int] = torch._C._current_graph_task_id
        self._write, self._faults = write, faults
        # Nodes may be watched by several of these.
        self._key = f"tracelake-{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._running: dict[int, Pass] = {}
        self._graphs: set[int] = set()
        self._latest: Pass | None = None

    def is_running(self) -> bool:
        """Whether autograd runs in this thread."""
        return self._graph() != -1

    def watch(
        self, name: str, inputs: list[Any], outputs: list[Any], inner: Sequence[Pass]
    ) -> Pass | None:
        """Watch the pass of a call that took what these nodes made and gave what those made, and
        in which those other calls were made; None if there will be none.
        """
        if not outputs or all(node in inputs for node in outputs):
            return None
        made = Pass(name, inner)
        for node in outputs:
            self._hook(node)[1].append(made)
        for node in inputs:
            self._hook(node)[0].append(made)
        if not inputs and not inner:
            self._end_with(made, _last_nodes(outputs))
        return made

    def close(self) -> None:
        """Write what autograd has not come to the end of."""
        with self._lock:
            self._finish(list(self._running.values()), 0)

    def _finish(self, running: list[Pass], now: int) -> None:
        # Outer ones began first.
        for made in reversed(running):
            del self._running[id(made)]
            inner = max((part.last for part in made.inner), default=0)
            made.last = max(made.start, made.last or inner or made.after or now)
            self._write(made.name, made.start, made.last)

    def _hook(self, node: Any) -> tuple[list[Pass], list[Pass]]:
        """The passes that end and that begin with a node: at one moment, so that they touch."""
        hooked: tuple[list[Pass], list[Pass]] | None = node.metadata.get(self._key)
        if hooked is None:
            ending: list[Pass] = []
            beginning: list[Pass] = []
            hooked = node.metadata[self._key] = (ending, beginning)

            def run(_: Any) -> None:
                now = perf_counter_ns()
                try:
                    self._passed(ending, beginning, now)
                except Exception as error:
                    self._faults.tell("Backward", error)

            node.register_prehook(run)
        return hooked

    def _end_with(self, made: Pass, nodes: list[Any]) -> None:
        """End a pass when these nodes have all run."""
        made.ends = made.waits = len(nodes)

        def run(*_: Any) -> None:
            now = perf_counter_ns()
            try:
                self._passed((made,), (), now)
            except Exception as error:
                self._faults.tell("Backward", error)

        for node in nodes:
            node.register_hook(run)

    def _passed(self, ending: Sequence[Pass], beginning: Sequence[Pass], now: int) -> None:
        graph = self._graph()
        with self._lock:
            if self._latest is not None and self._latest.graph == graph:
                self._latest.after = now
                self._latest = None
            for made in ending:
                if id(made) in self._running:
                    made.last = now
                    made.waits -= 1
                    if made.waits <= 0:
                        del self._running[id(made)]
                        self._write(made.name, made.start, now)
            # Of modules within each other the outer one was watched last.
            for made in reversed(beginning):
                # The graph of one forward pass may be run again, each time for another pass.
                if made.graph != graph:
                    made.graph = graph
                    made.begin(now)
                    self._running[id(made)] = self._latest = made
            is_new = bool(beginning) and graph not in self._graphs
            if is_new:
                self._graphs.add(graph)
        if is_new:
            self._at_end(lambda: self._over(graph))

    def _over(self, graph: int) -> None:
        now = perf_counter_ns()
        with self._faults.harmless("Backward"), self._lock:
            self._graphs.discard(graph)
            self._finish([made for made in self._running.values() if made.graph == graph], now)


def _last_nodes(outputs: list[Any]) -> list[Any]:
    """The nodes behind these that autograd comes to last: after them are only parameters."""
    seen, left, last = set(outputs), list(outputs), []
    while left:
        node = left.pop()
        behind = [
            found
            for found, _ in node.next_functions
            if found is not None and type(found).__name__ != "AccumulateGrad"
        ]
        if not behind:
            last.append(node)
        left += [found for found in behind if found not in seen]
        seen.update(behind)
    return last
