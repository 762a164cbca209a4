"""When the backward pass of each module began and ended, told by the nodes of autograd's graph.

Hooks of modules themselves (``register_full_backward_hook``) forbid to change their output in
place, as many models do. Nodes do not care: the pass of a module begins with the node that made
its output, and ends with the one that made its input.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import Any

from pipeline.extras import extra
from pipeline.record.faults import Faults
from pipeline.record.timeline import THREAD, Track

__all__ = ["Backward", "Pass", "Passed", "add_nodes"]

Passed = tuple[str, int, int, Track]
"""A pass: the name of a module, start and end in nanoseconds, and the thread."""
Write = Callable[[Callable[[], list[Passed]], int], object]
"""Gets what tells the passes of a run of a graph, and when that was over."""

_LONG = 100


def add_nodes(value: Any, nodes: dict[Any, None], tensor: type) -> None:
    """Add the nodes of autograd's graph behind the tensors in what a module takes or gives.

    Types alone decide what to look at: a batch may answer, or change, for whatever it is asked.
    """
    left: list[Any] = [value]
    seen: dict[int, Any] = {}
    while left:
        value = left.pop()
        if isinstance(value, tensor):
            node = value.grad_fn  # type: ignore[attr-defined]
            if node is not None:
                nodes[node] = None
        elif id(value) not in seen:
            parts = _parts(value)
            if parts:
                # Kept, so that no other is given its id meanwhile.
                seen[id(value)] = value
                left += parts


def _parts(value: Any) -> Iterable[Any]:
    """What a value holds in which there may be tensors."""
    if isinstance(value, list | tuple):
        kind: Any = list if isinstance(value, list) else tuple
        parts: Sequence[Any] = kind.__getitem__(value, slice(None))
        # Numbers and texts come in thousands.
        is_flat = len(parts) >= _LONG and isinstance(parts[0], int | float | str | bytes)
        return () if is_flat else parts
    if isinstance(value, dict):
        return list(dict.values(value))
    fields = getattr(type(value), "__dataclass_fields__", ())
    return [getattr(value, name, None) for name in fields]


class Pass:
    """The backward pass of one call of a module. It holds no node: nodes hold it."""

    __slots__ = ("ends", "inner", "last", "name")

    def __init__(self, name: str, inner: Sequence[Pass]) -> None:
        self.name = name
        self.inner = inner  # passes of calls within that call
        self.ends = 1  # how many nodes end it
        self.last = 0  # when it ended


_Came = tuple[Sequence[Pass], Sequence[Pass], int, Track]
"""A node came: the passes that end with it and that begin, when, and in which thread."""


class Backward:
    """Watches calls of modules; ``write`` gets the backward passes of a graph when it has run.

    The input of a module may need no gradient, such as that of the first. Then the pass ends with
    the last node of its own; that of a module of modules with the last of theirs. That of a module
    that cuts off its input ends where the next begins, or all is over.
    """

    def __init__(self, write: Write, graph: Callable[[], int], faults: Faults) -> None:
        """``graph`` numbers the run of a graph that this thread is in."""
        # By which PyTorch's own wrappers for distributed training know the end, too.
        engine = extra("torch.autograd", "torch").Variable._execution_engine
        self._at_end = engine.queue_callback
        self._write, self._graph, self._faults = write, graph, faults
        # Nodes may be watched by several of these.
        self._key = f"tracelake-{uuid.uuid4().hex}"
        # What came in each run of a graph. It is only noted there: between operations, whose data
        # fill the caches, every line of Python costs ten times what it does in a loop.
        self._came: dict[int, list[_Came]] = {}

    def watch(
        self, name: str, inputs: dict[Any, None], outputs: dict[Any, None], inner: Sequence[Pass]
    ) -> Pass | None:
        """Watch the pass of a call that took what these nodes made and gave what those made, and
        in which those other calls were made; None if there will be none.
        """
        # What it has handed on is not its own.
        own = [node for node in outputs if node not in inputs]
        if not own:
            return None
        made = Pass(name, inner)
        for node in own:
            self._note(node).beginning.append(made)
        for node in inputs:
            self._note(node).ending.append(made)
        if not inputs and not inner:
            self._end_with(made, self._last_nodes(own))
        return made

    def settle(self, track: Track | None = None) -> None:
        """Write what autograd never came to the end of, as where it raised: of all threads, or of
        one in which it does not run now.
        """
        for graph, came in list(self._came.items()):
            if came and track in (None, came[0][3]):
                self._over(graph, came[-1][2])

    def came(self, note: _Note) -> None:
        """A node came. The hook of the node calls this."""
        now = perf_counter_ns()
        graph = self._graph()
        came = self._came.get(graph)
        if came is None:
            came = self._came.setdefault(graph, [])
            self._at_end(lambda: self._over(graph, perf_counter_ns()))
        came.append((note.ending, note.beginning, now, THREAD.track))

    def failed(self, error: Exception) -> None:
        """What noting a node raised. The hook of the node calls this."""
        self._faults.tell("Backward", error)

    def _note(self, node: Any) -> _Note:
        """What notes that a node comes: all that begins and ends with it at one moment, so that
        they touch.
        """
        metadata = node.metadata
        note: _Note | None = metadata.get(self._key)
        if note is None:
            note = metadata[self._key] = _Note(self)
            node.register_prehook(note)
        return note

    def _end_with(self, made: Pass, nodes: list[Any]) -> None:
        """End a pass when these nodes have all run."""
        made.ends = len(nodes)
        note = _Note(self)
        note.ending.append(made)
        for node in nodes:
            node.register_hook(note)

    def _last_nodes(self, outputs: Iterable[Any]) -> list[Any]:
        """The nodes behind these that autograd comes to last: after them are only parameters, and
        what other calls gave, as where a module keeps a state.
        """
        seen, left, last = set(outputs), list(outputs), []
        while left:
            node = left.pop()
            behind = [
                found
                for found, _ in node.next_functions
                if found is not None
                and type(found).__name__ != "AccumulateGrad"
                and self._key not in found.metadata
            ]
            if not behind:
                last.append(node)
            left += [found for found in behind if found not in seen]
            seen.update(behind)
        return last

    def _over(self, graph: int, now: int) -> None:
        with self._faults.harmless("Backward"):
            came = self._came.pop(graph, [])
            self._write(lambda: _passes(came, now), now)


class _Note:
    """A hook of a node: it notes that the node comes, and which passes end and begin with it."""

    __slots__ = ("beginning", "ending", "of")

    def __init__(self, of: Backward) -> None:
        self.of = of
        self.ending: list[Pass] = []
        self.beginning: list[Pass] = []

    def __call__(self, *_: Any) -> None:
        try:
            self.of.came(self)
        except Exception as error:
            self.of.failed(error)


def _passes(came: list[_Came], over: int) -> list[Passed]:
    """The passes of a run of a graph, from the nodes that came and the time at which it was over,
    in the order in which they ended.
    """
    # One pass of a graph that is run again is another each time.
    running: dict[Pass, list[Any]] = {}  # start, thread, how many nodes have ended it, last, next
    begun: set[Pass] = set()
    ended: list[Passed] = []
    latest: list[Any] | None = None
    for ending, beginning, now, track in sorted(came, key=lambda each: each[2]):
        if latest is not None:
            latest[4], latest = now, None
        for made in ending:
            state = running.get(made)
            if state is not None:
                state[2], state[3] = state[2] + 1, now
                if state[2] >= made.ends:
                    del running[made]
                    made.last = now
                    ended.append((made.name, state[0], now, state[1]))
        # Of modules within each other the outer one was watched last.
        for made in reversed(beginning):
            if made not in begun:
                begun.add(made)
                made.last = 0
                latest = running[made] = [now, track, 0, 0, 0]
    # Outer ones began first.
    for made in reversed(running):
        start, track, _, last, after = running[made]
        inner = max((part.last for part in made.inner), default=0)
        made.last = max(start, last or inner or after or over)
        ended.append((made.name, start, made.last, track))
    return ended
