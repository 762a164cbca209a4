"""``TorchHook``: the steps of a PyTorch training, in smdebug's timeline layout."""

from __future__ import annotations

import atexit
import operator
import os
import threading
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from pipeline.errors import UsageError
from pipeline.extras import extra
from pipeline.record.backward import Backward, Passed, add_nodes
from pipeline.record.faults import Faults
from pipeline.record.files import rank_of
from pipeline.record.running import Running, Under
from pipeline.record.steps import Steps
from pipeline.record.timeline import THREAD, Args, Timeline
from pipeline.record.watched import Call, Loader, watch_calls

__all__ = ["TorchHook"]

_RECOMPUTED = (("recomputed", True),)


class TorchHook:
    """Writes when each step, module, optimizer and fetch of a batch began and ended.

    ``out`` is the folder of the job. ``rank`` is by default that of the environment (``RANK``).
    Register a model, and as there are a loss, optimizers and data loaders; ``close`` it, or use
    it as a context manager. Events are on the tracks ``Step:ModeKeys.TRAIN`` (``EVAL``,
    ``GLOBAL``), ``Forward``, ``Backward``, ``Optimizer``, ``DataIterator`` and
    ``DataLoaderIterInitialize``; backward passes are written when a graph has run. One training
    at a time: its threads may be many. Needs ``tracelake[torch]``.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        node: str | None = None,
        rank: int | None = None,
        max_bytes: int = 10 << 20,
        max_seconds: float = 60.0,
    ) -> None:
        torch = self._torch = extra("torch", "torch")
        self._timeline = Timeline(out, node, rank_of(rank), max_bytes, max_seconds)
        self._steps = Steps(self._write_step)
        self._faults = Faults()
        self._has_grad = torch.is_grad_enabled
        self._graph = torch._C._current_graph_task_id  # -1 outside of a backward pass
        self._backward = Backward(self._write_backward, self._graph, self._faults)
        self._lock = threading.RLock()
        self._running = Running(torch)
        self._handles: list[Any] = []
        self._has_passed = self._is_closed = False
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._taken: set[str] = set()
        atexit.register(self.close)

    def register_hook(self, model: Any) -> None:
        """Watch a model: its passes are steps, and every module in it has events.

        Modules are named as in ``named_modules``, those of another model that have the same names
        with that model's before theirs. Of a compiled model only the whole is watched, since its
        modules do not run by themselves. Raises ``UsageError`` for what is no module, for one that
        is watched already, and of a hook that is closed.
        """
        self._watch(model, is_root=True)

    def register_loss(self, loss: Any) -> None:
        """Watch a module whose passes are no steps of their own: the one that computes the loss,
        a teacher, a discriminator. Raises as ``register_hook`` does.
        """
        self._watch(loss, is_root=False)

    def register_optimizer(self, optimizer: Any) -> None:
        """Watch an optimizer: a step of training ends when it has stepped.

        Raises ``UsageError`` for what is none, and of a hook that is closed.
        """
        self._check_open()
        if not hasattr(optimizer, "register_step_post_hook"):
            raise UsageError(f"{type(optimizer).__name__} is no optimizer of PyTorch")
        self._steps.has_optimizer = True
        name = type(optimizer).__name__

        def before(optimizer: Any, *_: Any) -> None:
            now = perf_counter_ns()
            try:
                self._settle_before(optimizer)
                self._running.local.stack.append(Under(optimizer, now, optimizer))
                if not self._has_passed:
                    # Of a model whose passes are not seen the steps are those of its optimizer.
                    with self._lock:
                        self._steps.begin(now, "TRAIN")
            except Exception as error:
                self._faults.tell(name, error)

        def after(optimizer: Any, *_: Any) -> None:
            end = perf_counter_ns()
            try:
                began = self._running.pop(optimizer)
                if began is not None:
                    self._timeline.slice("Optimizer", f"{name}.step", began.start, end)
                    with self._lock:
                        self._steps.stepped(end)
                if self._names and not self._has_passed:
                    self._faults.tell("forward", RuntimeError(
                        "no pass of the model is seen; of one that is compiled give "
                        "torch.compile(model)"
                    ))  # fmt: skip
            except Exception as error:
                self._faults.tell(name, error)

        self._handles.append(optimizer.register_step_pre_hook(before))
        self._handles.append(optimizer.register_step_post_hook(after))

    def wrap_dataloader(self, loader: Any) -> Any:
        """A stand-in for the loader, whose fetches of batches are written.

        Raises ``UsageError`` for what gives no batches, for one that is wrapped already, and of a
        hook that is closed.
        """
        self._check_open()
        if type(loader) is Loader and loader._watcher is self:
            raise UsageError("this data loader is wrapped already")
        if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
            raise UsageError(f"{type(loader).__name__} gives no batches")
        return Loader(loader, self)

    def close(self) -> None:
        """Write the step that is under way, close the files, and let go of all that is watched."""
        atexit.unregister(self.close)
        self._is_closed = True
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        with self._faults.harmless("close"):
            self._backward.settle()
        with self._faults.harmless("close"), self._lock:
            self._steps.end()
        self._timeline.close()

    def __enter__(self) -> TorchHook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def entered(self, call: Call, module: Any, given: tuple[Any, ...]) -> None:
        """A module begins to run. Its hooks call this."""
        now = perf_counter_ns()
        stack = self._running.local.stack
        if call.is_root and self._graph() == -1:
            self._has_passed = True
            self._running.forget_interrupted(module)
            self._backward.settle(THREAD.track)
            # An optimizer that runs the model itself, as LBFGS does, is where its step begins.
            begins = stack[0].start if stack and stack[0].is_optimizer else now
            with self._lock:
                self._steps.begin(begins, "TRAIN" if module.training else "EVAL")
        under = Under(call, now, module)
        stack.append(under)
        if self._has_grad():
            # Asked now: what is changed in place has another node afterwards.
            add_nodes(given, under.nodes, self._torch.Tensor)

    def left(self, call: Call, output: Any) -> None:
        """A module has run. Its hooks call this."""
        end = perf_counter_ns()
        under = self._running.pop(call)
        if under is None:
            return
        # Where autograd runs in this thread a forward is a checkpoint's.
        again = self._graph() != -1
        args = (*call.args, *_RECOMPUTED) if again else call.args
        self._timeline.slice("Forward", call.name, under.start, end, args)
        stack = self._running.local.stack
        # Those within another are over when that is, but for what an interrupt left there.
        if not again and (call.is_root or not stack or stack[-1].is_optimizer):
            with self._lock:
                (self._steps.ran if call.is_root else self._steps.happened)(end)
        inner = under.inner
        if self._has_grad():
            nodes: dict[Any, None] = {}
            add_nodes(output, nodes, self._torch.Tensor)
            made = self._backward.watch(call.name, under.nodes, nodes, inner)
            # Of what has no pass itself those within it are the caller's.
            inner = [made] if made is not None else inner
        if inner and (stack or call.within):
            around = stack[-1] if stack else self._running.around(call)
            if around is not None:
                around.hold(inner)

    def set_up(self, start: int, loader: Any) -> None:
        """An iterator of a data loader is made, with its workers. ``Loader`` calls this."""
        with self._faults.harmless("DataLoaderIterInitialize"):
            self._write(
                "DataLoaderIterInitialize", "DataLoaderIter.__init__", start, _args(loader)
            )

    def fetched(self, start: int, loader: Any) -> None:
        """A batch was fetched, with which a step begins. ``Loader`` calls this."""
        with self._faults.harmless("interrupts"):
            self._running.forget_interrupted()
        with self._faults.harmless("DataIterator"):
            self._backward.settle(THREAD.track)
            with self._lock:
                self._steps.begin(start)
            end = self._write("DataIterator", "DataLoaderIter::GetNext", start, _args(loader))
            with self._lock:
                self._steps.happened(end)

    def failed(self, name: str, error: Exception) -> None:
        """What a hook of a module raised. Its hooks call this."""
        self._faults.tell(name, error)

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("this hook is closed: make another one")

    def _watch(self, model: Any, is_root: bool) -> None:
        self._check_open()
        name = type(model).__name__
        if not isinstance(model, self._torch.nn.Module):
            raise UsageError(f"{name} is no module of PyTorch")
        if getattr(model, "_compiled_call_impl", None) is not None:
            raise UsageError(
                f"{name} has compiled itself, and then no pass of it is seen: give "
                "torch.compile(model) instead"
            )
        if model in self._names:
            raise UsageError(f"{name} is watched already, as {self._names[model]}")
        scripted = self._torch.jit.ScriptModule
        if isinstance(model, scripted):
            raise UsageError(
                f"{name} is TorchScript, which takes no hooks: give the module itself"
            )
        own = self._free(name)
        is_compiling = self._torch.compiler.is_compiling
        calls: dict[str, Call] = {}
        for path, module in model.named_modules():
            if module in self._names or isinstance(module, scripted):
                continue
            named = own if not path else path if path not in self._taken else f"{own}.{path}"
            if path and getattr(module, "_compiled_call_impl", None) is not None:
                self._faults.tell(named, RuntimeError(
                    "it has compiled itself, and then no pass of it is seen; put "
                    "torch.compile of it in its place"
                ))  # fmt: skip
                continue
            self._names[module] = named
            within = frozenset(calls[outer] for outer in _outer(path) if outer in calls)
            kind = type(module).__name__
            calls[path] = call = Call(named, kind, is_root and not path, within)
            self._handles += watch_calls(module, call, self, is_compiling)
            if hasattr(model, "_orig_mod"):
                break  # compiled
        self._taken.update(self._names.values())

    def _free(self, name: str) -> str:
        """The name, or where it is taken the first with a number that is not."""
        number, free = 1, name
        while free in self._taken:
            number += 1
            free = f"{name}_{number}"
        return free

    def _settle_before(self, optimizer: Any) -> None:
        """What is left of what raised or was interrupted is over where an optimizer steps."""
        self._running.pop(optimizer)
        self._running.forget_interrupted()
        if self._graph() == -1:
            self._backward.settle(THREAD.track)

    def _write(self, phase: str, name: str, start: int, args: Args = ()) -> int:
        end = perf_counter_ns()
        self._timeline.slice(phase, name, start, end, args)
        return end

    def _write_step(self, mode: str, number: int, start: int, end: int) -> None:
        name = f"Step:ModeKeys.{mode}"
        self._timeline.slice(name, name, start, end, (("step_num", number),))

    def _write_backward(self, passes: Callable[[], list[Passed]], over: int) -> None:
        self._timeline.later(lambda: [
            ("Backward", name, start, end, (), track) for name, start, end, track in passes()
        ])  # fmt: skip
        with self._lock:
            self._steps.happened(over)


def _outer(path: str) -> Iterator[str]:
    """The paths of the modules that the one of a path is part of."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _args(loader: Any) -> Args:
    try:
        return (("num_workers", operator.index(loader.num_workers)),)
    except (AttributeError, TypeError):
        return ()
