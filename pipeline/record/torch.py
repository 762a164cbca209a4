"""``TorchHook``: the steps of a PyTorch training, in smdebug's timeline layout."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from time import perf_counter_ns
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from pipeline.errors import UsageError
from pipeline.extras import extra
from pipeline.record.backward import Backward, Pass, add_nodes
from pipeline.record.faults import Faults
from pipeline.record.files import rank_of
from pipeline.record.steps import Steps
from pipeline.record.timeline import THREAD, Args, Timeline, Track
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
        self._running = _Running()
        self._handles: list[Any] = []
        self._has_passed = False
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._taken: set[str] = set()
        atexit.register(self.close)

    def register_hook(self, model: Any) -> None:
        """Watch a model: its passes are steps, and every module in it has events.

        Modules are named as in ``named_modules``, those of another model that have the same names
        with that model's before theirs. Of a compiled model only the whole is watched, since its
        modules do not run by themselves. Raises ``UsageError`` for what is no module, and for one
        that is watched already.
        """
        self._watch(model, is_root=True)

    def register_loss(self, loss: Any) -> None:
        """Watch the module that computes the loss."""
        self._watch(loss, is_root=False)

    def register_optimizer(self, optimizer: Any) -> None:
        """Watch an optimizer: a step of training ends when it has stepped.

        Raises ``UsageError`` for what is none.
        """
        if not hasattr(optimizer, "register_step_post_hook"):
            raise UsageError(f"{type(optimizer).__name__} is no optimizer of PyTorch")
        self._steps.has_optimizer = True
        name = type(optimizer).__name__

        def before(optimizer: Any, *_: Any) -> None:
            now = perf_counter_ns()
            try:
                self._settle_before(optimizer)
                self._running.stack.append(_Under(optimizer, now, is_optimizer=True))
                if not self._has_passed:
                    # Of a model whose passes are not seen the steps are those of its optimizer.
                    with self._lock:
                        self._steps.begin(now, "TRAIN")
            except Exception as error:
                self._faults.tell(name, error)

        def after(optimizer: Any, *_: Any) -> None:
            end = perf_counter_ns()
            try:
                began = self._pop(optimizer)
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
        """The same loader, whose fetches of batches are written."""
        return Loader(loader, self)

    def close(self) -> None:
        """Write what is under way, close the files, and let go of all that is watched."""
        atexit.unregister(self.close)
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
        stack = self._running.stack
        if call.is_root and self._graph() == -1:
            self._has_passed = True
            self._backward.settle(THREAD.track)
            # An optimizer that runs the model itself, as LBFGS does, is where its step begins.
            begins = stack[0].start if stack and stack[0].is_optimizer else now
            with self._lock:
                self._steps.begin(begins, "TRAIN" if module.training else "EVAL")
        under = _Under(call, now)
        stack.append(under)
        if self._has_grad():
            # Asked now: what is changed in place has another node afterwards.
            add_nodes(given, under.nodes, self._torch.Tensor)

    def left(self, call: Call, output: Any) -> None:
        """A module has run. Its hooks call this."""
        end = perf_counter_ns()
        under = self._pop(call)
        if under is None:
            return
        # Where autograd runs in this thread a forward is a checkpoint's.
        again = self._graph() != -1
        args = (*call.args, *_RECOMPUTED) if again else call.args
        self._timeline.slice("Forward", call.name, under.start, end, args)
        stack = self._running.stack
        # Those within another are over when that is. An interrupt leaves it there for ever.
        if not again and (call.is_root or not stack or stack[-1].is_optimizer):
            with self._lock:
                (self._steps.ran if call.is_root else self._steps.happened)(end)
        if self._has_grad():
            nodes: dict[Any, None] = {}
            add_nodes(output, nodes, self._torch.Tensor)
            made = self._backward.watch(call.name, under.nodes, nodes, under.inner)
            if made is not None and stack:
                stack[-1].inner.append(made)

    def set_up(self, start: int, loader: Any) -> None:
        """An iterator of a data loader is made, with its workers. ``Loader`` calls this."""
        with self._faults.harmless("DataLoaderIterInitialize"):
            self._write(
                "DataLoaderIterInitialize", "DataLoaderIter.__init__", start, _args(loader)
            )

    def fetched(self, start: int, loader: Any) -> None:
        """A batch was fetched, with which a step begins. ``Loader`` calls this."""
        # Nothing is under way where a batch is fetched: what is there was interrupted, or raised.
        self._running.stack.clear()
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

    def _watch(self, model: Any, is_root: bool) -> None:
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
        for path, module in model.named_modules():
            if module in self._names or isinstance(module, scripted):
                continue
            named = own if not path else path if path not in self._taken else f"{own}.{path}"
            self._names[module] = named
            call = Call(named, type(module).__name__, is_root and not path)
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
        """What is left of what raised or was interrupted is over where an optimizer steps, unless
        a model runs that does so itself.
        """
        self._pop(optimizer)
        if self._graph() == -1:
            self._backward.settle(THREAD.track)
        stack = self._running.stack
        if stack and not any(under.is_optimizer for under in stack) and not self._is_in_module():
            stack.clear()

    def _is_in_module(self) -> bool:
        """Whether a module runs in this thread."""
        of_module = self._torch.nn.Module._wrapped_call_impl.__code__
        frame = sys._getframe()
        while frame is not None and frame.f_code is not of_module:
            frame = frame.f_back  # type: ignore[assignment]
        return frame is not None

    def _pop(self, what: Any) -> _Under | None:
        """What ends now; whatever began within it and has not ended never will."""
        stack = self._running.stack
        if stack and stack[-1].what is what:
            return stack.pop()
        for at in range(len(stack) - 1, -1, -1):
            if stack[at].what is what:
                found = stack[at]
                del stack[at:]
                return found
        return None

    def _write(self, phase: str, name: str, start: int, args: Args = ()) -> int:
        end = perf_counter_ns()
        self._timeline.slice(phase, name, start, end, args)
        return end

    def _write_step(self, mode: str, number: int, start: int, end: int) -> None:
        name = f"Step:ModeKeys.{mode}"
        self._timeline.slice(name, name, start, end, (("step_num", number),))

    def _write_backward(self, passes: list[tuple[str, int, int, Track]]) -> None:
        for name, start, end, track in passes:
            self._timeline.slice("Backward", name, start, end, track=track)
        if passes:
            with self._lock:
                self._steps.happened(max(end for _, _, end, _ in passes))


class _Under:
    """What is under way, a call or an optimizer: its start, what autograd knows of its input, and
    the backward passes of the calls within it.
    """

    __slots__ = ("inner", "is_optimizer", "nodes", "start", "what")

    def __init__(self, what: Any, start: int, is_optimizer: bool = False) -> None:
        self.what, self.start, self.is_optimizer = what, start, is_optimizer
        self.nodes: dict[Any, None] = {}
        self.inner: list[Pass] = []


class _Running(threading.local):
    """What is under way in a thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[_Under] = []


def _args(loader: Any) -> Args:
    workers = getattr(loader, "num_workers", None)
    return () if workers is None else (("num_workers", workers),)
