"""What a model and a data loader that are watched carry: hooks that ask a ``Watcher``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import copy
from time import perf_counter_ns
from typing import Any, Protocol

__all__ = ["Call", "Loader", "Watcher", "watch_calls"]


class Watcher(Protocol):
    """Is told of what happens. Nothing that it raises may get into the training."""

    def entered(self, call: Call, module: Any, given: tuple[Any, ...]) -> None:
        """A module begins to run."""

    def left(self, call: Call, output: Any) -> None:
        """It has run."""

    def set_up(self, start: int, loader: Any) -> None:
        """An iterator of a data loader is made, with its workers."""

    def fetched(self, start: int, loader: Any) -> None:
        """A batch was fetched."""

    def failed(self, name: str, error: Exception) -> None:
        """What telling of a module raised."""


class Call:
    """A module that is watched: the name of its calls, whether it is a model of its own, and the
    modules that it is part of.
    """

    __slots__ = ("args", "is_root", "name", "within")

    def __init__(self, name: str, kind: str, is_root: bool, within: frozenset[Call]) -> None:
        self.name, self.is_root, self.within = name, is_root, within
        self.args = (("module", kind),)


def watch_calls(
    module: Any, call: Call, watcher: Watcher, is_compiling: Callable[[], bool]
) -> Any:
    """Tell the watcher of each call of a module. Gives the handles that end it."""
    given = (call, watcher, is_compiling)
    return (
        module.register_forward_pre_hook(_Before(*given), with_kwargs=True),
        # Called after an exception too: the next call would else end this one.
        module.register_forward_hook(_After(*given), with_kwargs=True, always_call=True),
    )


class _Hook:
    def __init__(self, call: Call, watcher: Watcher, is_compiling: Callable[[], bool]) -> None:
        self._call, self._watcher, self._is_compiling = call, watcher, is_compiling

    def __reduce__(self) -> tuple[Any, ...]:
        # Nobody watches a copy of the model. What is there instead takes whatever it is given, and
        # can be loaded where there is nothing but Python and PyTorch.
        return getattr, (nullcontext(), "__exit__")


class _Before(_Hook):
    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        # In a graph that is being compiled no clock can be asked.
        if self._is_compiling():
            return
        try:
            self._watcher.entered(self._call, module, (*args, kwargs) if kwargs else args)
        except Exception as error:
            self._watcher.failed(self._call.name, error)


class _After(_Hook):
    def __call__(self, module: Any, args: Any, kwargs: Any, output: Any = None) -> None:
        if self._is_compiling():
            return
        try:
            self._watcher.left(self._call, output)
        except Exception as error:
            self._watcher.failed(self._call.name, error)


class Loader:
    """A data loader whose fetches are told; its attributes are the loader's.

    A copy of it is one of the loader. It is no ``DataLoader`` itself: what trainers take for one
    they take apart, and make another of.
    """

    _loader: Any
    _watcher: Watcher

    def __init__(self, loader: Any, watcher: Watcher) -> None:
        vars(self).update(_loader=loader, _watcher=watcher)

    def __iter__(self) -> Iterator[Any]:
        start = perf_counter_ns()
        batches = iter(self._loader)
        self._watcher.set_up(start, self._loader)
        return self._fetches(batches)

    def _fetches(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            start = perf_counter_ns()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._watcher.fetched(start, self._loader)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)

    def __bool__(self) -> bool:
        return bool(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._loader, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy, (self._loader,)
