"""``TorchHook``: the steps of a PyTorch training, in smdebug's timeline layout."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from types import TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pipeline.errors import UsageError
from pipeline.extras import extra
from pipeline.record.backward import Backward, nodes_of
from pipeline.record.faults import Faults
from pipeline.record.files import rank_of
from pipeline.record.steps import Steps
from pipeline.record.timeline import Timeline

__all__ = ["TorchHook"]


class TorchHook:
    """Writes when each step, module, optimizer and fetch of a batch began and ended.

    ``out`` is the folder of the job. ``rank`` is by default that of the environment (``RANK``).
    Register a model, and as there are a loss, optimizers and data loaders; ``close`` it, or use
    it as a context manager. Events are on the tracks ``Step:ModeKeys.TRAIN`` (``EVAL``,
    ``GLOBAL``), ``Forward``, ``Backward``, ``Optimizer`` and ``DataIterator``. Needs
    ``tracelake[torch]``.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        node: str | None = None,
        rank: int | None = None,
        max_bytes: int = 10 << 20,
        max_seconds: float = 60.0,
    ) -> None:
        self._torch = extra("torch", "torch")
        self._timeline = Timeline(out, node, rank_of(rank), max_bytes, max_seconds)
        self._steps = Steps(self._write_step)
        self._faults = Faults()
        self._backward = Backward(self._write_backward, self._faults)
        self._lock = threading.RLock()
        self._stacks = threading.local()
        self._handles: list[Any] = []
        self._has_passed = False
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        atexit.register(self.close)

    def register_hook(self, model: Any) -> None:
        """Watch a model: its passes are steps, and every module in it has events.

        Of a compiled model only the whole is watched, since its modules do not run by themselves.
        Raises ``UsageError`` for what is no module, and for one that is watched already.
        """
        self._watch(model, type(model).__name__, is_root=True)

    def register_loss(self, loss: Any) -> None:
        """Watch the module that computes the loss."""
        self._watch(loss, type(loss).__name__, is_root=False)

    def register_optimizer(self, optimizer: Any) -> None:
        """Watch an optimizer: a step of training ends when it has stepped."""
        self._steps.has_optimizer = True
        name = type(optimizer).__name__

        def before(optimizer: Any, *_: Any) -> None:
            with self._faults.harmless(name):
                self._backward.finish()
                now = perf_counter_ns()
                self._stack().append(_Under(name, now, is_optimizer=True))
                if not self._has_passed:
                    self._without_passes(now)

        def after(optimizer: Any, *_: Any) -> None:
            with self._faults.harmless(name):
                began = self._pop(name)
                if began is not None:
                    end = self._write("Optimizer", f"{name}.step", began.start)
                    with self._lock:
                        self._steps.stepped(end)

        self._handles.append(optimizer.register_step_pre_hook(before))
        self._handles.append(optimizer.register_step_post_hook(after))

    def wrap_dataloader(self, loader: Any) -> Any:
        """The same loader, whose fetches of batches are written."""
        return _Loader(loader, self)

    def close(self) -> None:
        """Write what is under way, close the files, and let go of all that is watched."""
        atexit.unregister(self.close)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        with self._faults.harmless("close"):
            self._backward.finish()
        self._backward.close()
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

    def _watch(self, model: Any, name: str, is_root: bool) -> None:
        if not isinstance(model, self._torch.nn.Module):
            raise UsageError(f"{name} is no module of PyTorch")
        if getattr(model, "_compiled_call_impl", None) is not None:
            raise UsageError(
                f"{name} has compiled itself, and then no pass of it is seen: give "
                "torch.compile(model) instead"
            )
        is_compiled = hasattr(model, "_orig_mod")
        for path, module in [("", model)] if is_compiled else list(model.named_modules()):
            if module in self._names:
                if not path:
                    raise UsageError(f"{name} is watched already, as {self._names[module]}")
                continue
            self._names[module] = path or name
            call = _Call(self, path or name, is_root and not path)
            self._handles += [
                module.register_forward_pre_hook(_Before(call), with_kwargs=True),
                # Called after an exception too: the next call would else end this one.
                module.register_forward_hook(_After(call), with_kwargs=True, always_call=True),
            ]

    def _stack(self) -> list[_Under]:
        """What is under way in this thread."""
        stack: list[_Under] | None = getattr(self._stacks, "calls", None)
        if stack is None:
            stack = self._stacks.calls = []
        return stack

    def _pop(self, name: str) -> _Under | None:
        """What ends now; whatever began within it and has not ended never will."""
        stack = self._stack()
        while stack:
            found = stack.pop()
            if found.name == name:
                return found
        return None

    def _write(self, phase: str, name: str, start: int, **args: Any) -> int:
        end = perf_counter_ns()
        self._timeline.slice(phase, name, start, end, args)
        return end

    def _write_step(self, mode: str, number: int, start: int, end: int) -> None:
        name = f"Step:ModeKeys.{mode}"
        self._timeline.slice(name, name, start, end, {"step_num": number})

    def _write_backward(self, name: str, start: int, end: int) -> None:
        self._timeline.slice("Backward", name, start, end)
        with self._lock:
            self._steps.happened(end)

    def _entered(self, call: _Call, module: Any, given: Any) -> None:
        now = perf_counter_ns()
        stack = self._stack()
        if call.is_root and not self._in_backward():
            self._has_passed = True
            self._backward.finish()
            # An optimizer that runs the model itself, as LBFGS does, is where its step begins.
            begins = stack[0].start if stack and stack[0].is_optimizer else now
            with self._lock:
                self._steps.begin(begins, "TRAIN" if module.training else "EVAL")
        # Asked now: what is changed in place has another node afterwards.
        nodes = tuple(nodes_of(given)) if self._torch.is_grad_enabled() else ()
        stack.append(_Under(call.name, now, nodes))

    def _without_passes(self, now: int) -> None:
        """A model whose passes are not seen is optimized: its steps are those of the optimizer."""
        with self._lock:
            self._steps.begin(now, "TRAIN")
        if self._names:
            self._faults.tell("forward", RuntimeError(
                "no pass of the model is seen; of one that is compiled give torch.compile(model)"
            ))  # fmt: skip

    def _left(self, call: _Call, module: Any, output: Any) -> None:
        began = self._pop(call.name)
        if began is None:
            return
        again = {"recomputed": True} if self._in_backward() else {}
        end = self._write("Forward", call.name, began.start, module=type(module).__name__, **again)
        if not again:
            with self._lock:
                (self._steps.ran if call.is_root else self._steps.happened)(end)
        if self._torch.is_grad_enabled():
            self._backward.watch(call.name, module, began.nodes, nodes_of(output))

    def _in_backward(self) -> bool:
        """Whether autograd runs in this thread: then a forward is a checkpoint's."""
        return bool(self._torch._C._current_graph_task_id() != -1)

    def _fetched(self, start: int, **args: Any) -> None:
        """A batch was fetched, with which a step begins."""
        with self._faults.harmless("DataIterator"):
            with self._lock:
                self._steps.begin(start)
            end = self._write("DataIterator", "DataLoaderIter::GetNext", start, **args)
            with self._lock:
                self._steps.happened(end)


class _Under(NamedTuple):
    """What is under way: its name, its start, and what autograd knows of its input."""

    name: str
    start: int
    nodes: tuple[Any, ...] = ()
    is_optimizer: bool = False


class _Call:
    """A module that is watched. What hooks hold is never copied or stored with the model."""

    def __init__(self, hook: TorchHook, name: str, is_root: bool) -> None:
        self.hook, self.name, self.is_root = hook, name, is_root
        self._is_compiling = hook._torch.compiler.is_compiling

    def do(self, work: Callable[[_Call, Any, Any], None], module: Any, what: Any) -> None:
        """Do it, unless the call is being compiled: in a graph no clock can be asked."""
        if self._is_compiling():
            return
        with self.hook._faults.harmless(self.name):
            work(self, module, what)


class _Before:
    def __init__(self, call: _Call) -> None:
        self._call = call

    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        self._call.do(self._call.hook._entered, module, (args, kwargs))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return _unwatched, ()


class _After(_Before):
    def __call__(self, module: Any, args: Any, kwargs: Any, output: Any = None) -> None:
        self._call.do(self._call.hook._left, module, output)


def _unwatched() -> Callable[..., None]:
    """The hook of a copy of a model that was watched."""
    return _nothing


def _nothing(*_: Any, **__: Any) -> None:
    return None


class _Loader:
    """A data loader whose fetches are written; whatever else is asked is the loader's answer."""

    def __init__(self, loader: Any, hook: TorchHook) -> None:
        self._loader, self._hook = loader, hook

    def __iter__(self) -> Iterator[Any]:
        workers = getattr(self._loader, "num_workers", None)
        args = {} if workers is None else {"num_workers": workers}
        batches = iter(self._loader)
        while True:
            start = perf_counter_ns()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._hook._fetched(start, **args)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
