"""What is under way: calls within calls and optimizers, in threads, and after an interrupt."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from pipeline.record import TorchHook
from tests.record.training import counts, events, spans

pytestmark = pytest.mark.slow


class Interrupted(nn.Module):
    """Is interrupted while ``is_now``."""

    is_now = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_now:
            raise KeyboardInterrupt
        return x * 2


def test_steps_after_an_interrupt(job: Path, hook: TorchHook) -> None:
    """As of a cell in a notebook: PyTorch tells hooks of exceptions, but not of this."""

    interrupted = Interrupted()
    model = nn.Sequential(nn.Linear(2, 2), interrupted).eval()
    hook.register_hook(model)
    with pytest.raises(KeyboardInterrupt):
        model(torch.randn(1, 2))
    interrupted.is_now = False
    for _ in range(3):
        model(torch.randn(1, 2))
        assert hook._running.local.stack == []
    hook.close()
    rows = events(job)
    # The first pass is in the step of the one that was interrupted, which has not ended.
    assert counts(rows, "Step:ModeKeys.EVAL") == {"Step:ModeKeys.EVAL": 3}
    assert counts(rows, "Forward") == {"Sequential": 3, "0": 4, "1": 3}


def test_what_an_interrupt_left_under_way_is_over_with_the_next_batch(
    job: Path, hook: TorchHook
) -> None:
    model = nn.Linear(3, 2)
    hook.register_hook(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)

    def interrupted() -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(interrupted)
    assert len(hook._running.local.stack) == 1
    for x in hook.wrap_dataloader([torch.randn(1, 3)] * 3):
        assert hook._running.local.stack == []
        model(x).sum().backward()
        optimizer.step()
    hook.close()
    assert counts(events(job), "Optimizer") == {"SGD.step": 3}


def test_what_an_interrupt_left_under_way_is_over_where_an_optimizer_steps(
    job: Path, hook: TorchHook
) -> None:
    """Where nobody tells of batches."""

    interrupted = Interrupted()
    model = nn.Sequential(nn.Linear(2, 2), interrupted)
    hook.register_hook(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)
    with pytest.raises(KeyboardInterrupt):
        model(torch.randn(1, 2))
    assert len(hook._running.local.stack) == 2
    interrupted.is_now = False
    for _ in range(3):
        model(torch.randn(1, 2)).sum().backward()
        optimizer.step()
        assert hook._running.local.stack == []
    hook.close()
    rows = events(job)
    assert counts(rows, "Optimizer") == {"SGD.step": 3}
    assert counts(rows, "Backward") == {"Sequential": 3, "0": 3, "1": 3}


def test_an_optimizer_that_steps_within_a_model_leaves_it_under_way(
    job: Path, hook: TorchHook
) -> None:
    """As where a model learns in its own forward."""

    class Learns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.optimizer = torch.optim.SGD(self.inner.parameters(), lr=0.1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.inner(x).sum().backward()
            self.optimizer.step()
            out: torch.Tensor = self.inner(x)
            return out

    model = Learns()
    hook.register_hook(model)
    hook.register_optimizer(model.optimizer)
    for _ in range(2):
        model(torch.randn(1, 2))
    hook.close()
    rows = events(job)
    assert counts(rows, "Forward") == {"Learns": 2, "inner": 4}
    assert counts(rows, "Optimizer") == {"SGD.step": 2}


def test_an_optimizer_that_fetches_batches_is_under_way_meanwhile(
    job: Path, hook: TorchHook
) -> None:
    """As LBFGS does over all of the data."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    hook.register_hook(model)
    hook.register_optimizer(optimizer)
    loader = hook.wrap_dataloader([torch.randn(4, 3), torch.randn(4, 3)])

    def closure() -> float:
        optimizer.zero_grad()
        total = 0.0
        for x in loader:
            loss = model(x).pow(2).mean()
            loss.backward()
            total += loss.item()
        return total

    for _ in range(3):
        optimizer.step(closure)
    hook.close()
    rows = events(job)
    assert counts(rows, "Optimizer") == {"LBFGS.step": 3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}


def test_a_model_that_fetches_batches_is_under_way_meanwhile(job: Path, hook: TorchHook) -> None:
    class Meta(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.loader = hook.wrap_dataloader([torch.randn(1, 2)] * 4)

        def forward(self) -> None:
            for x in self.loader:
                self.inner(x)

    model = Meta().eval()
    hook.register_hook(model)
    for _ in range(3):
        model()
    hook.close()
    rows = events(job)
    assert counts(rows, "Forward") == {"Meta": 3, "inner": 12}
    assert counts(rows, "DataIterator") == {"DataLoaderIter::GetNext": 12}
    assert counts(rows, "Step:ModeKeys.EVAL") == {"Step:ModeKeys.EVAL": 3}


def in_threads(*work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_model_whose_parts_run_in_threads_holds_their_passes(job: Path, hook: TorchHook) -> None:
    """As DataParallel runs the replicas of its module, and as branches may run at once."""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = nn.Sequential(nn.Linear(64, 64), nn.Tanh())
            self.right = nn.Sequential(nn.Linear(64, 64), nn.Tanh())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: dict[str, torch.Tensor] = {}
            in_threads(
                lambda: out.update(left=self.left(x)), lambda: out.update(right=self.right(x))
            )
            return torch.cat([out["left"], out["right"]])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branches, self.head = Branches(), nn.Linear(64, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(self.branches(x))
            return out.sum()

    model = Model()
    hook.register_hook(model)
    for _ in range(3):
        model(torch.randn(256, 64)).backward()
    hook.close()
    rows = events(job)
    names = ["branches", "left", "left.0", "left.1", "right", "right.0", "right.1"]
    inner = [name if name == "branches" else f"branches.{name}" for name in names]
    assert counts(rows, "Backward") == dict.fromkeys(["Model", "head", *inner], 3)
    whole, branches = spans(rows, "Model"), spans(rows, "branches")
    for name in inner:
        for (start, end), (first, last), (began, over) in zip(
            spans(rows, name), whole, branches, strict=True
        ):
            assert first <= began <= start < end <= over <= last


@pytest.mark.parametrize("kind", ["object", "kept", "no_grad"])
def test_what_a_module_without_a_pass_of_its_own_calls_is_within_the_outer_one(
    job: Path, hook: TorchHook, kind: str
) -> None:
    class Box:
        def __init__(self, held: torch.Tensor) -> None:
            self.held = held

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> object:
            with torch.set_grad_enabled(True):
                self.box = Box(self.b(torch.relu(self.a(x))))
            return self.box if kind == "object" else x

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = Encoder()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.set_grad_enabled(kind != "no_grad"):
                self.encoder(x)
            return self.encoder.box.held * 2

    model = Outer()
    hook.register_hook(model)
    model(torch.randn(512, 64)).sum().backward()
    hook.close()
    rows = events(job)
    assert counts(rows, "Backward") == {"Outer": 1, "encoder.a": 1, "encoder.b": 1}
    ((start, end),) = spans(rows, "Outer")
    ((b_start, b_end),), ((a_start, a_end),) = spans(rows, "encoder.b"), spans(rows, "encoder.a")
    assert start <= b_start < b_end <= a_start < a_end <= end


def test_an_optimizer_that_was_interrupted_is_over_with_the_next_pass(
    job: Path, hook: TorchHook
) -> None:
    """Where nobody tells of batches, and nothing else steps."""
    model = nn.Linear(3, 1).eval()
    hook.register_hook(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)

    def interrupted() -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(interrupted)
    for _ in range(3):
        model(torch.randn(1, 3))
        assert hook._running.local.stack == []
    hook.close()
    rows = events(job)
    steps = rows.filter(rows["process_name"] == "Step:ModeKeys.EVAL").sort("ts_ns")
    assert steps["step"].to_list() == [0, 1, 2]
    assert all(
        before <= after for before, after in pairwise(steps.select("ts_ns", "end_ns").rows())
    )
    assert steps["end_ns"][0] <= steps["ts_ns"][1]


def test_what_steps_an_optimizer_is_one_too(job: Path, hook: TorchHook) -> None:
    """As a scaler or a group of optimizers with hooks of its own."""

    class Group:
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self.inner = inner
            self.hooks: list[list[Callable[..., None]]] = [[], []]

        def register_step_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
            self.hooks[0].append(hook)
            return RemovableHandle(OrderedDict())

        def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
            self.hooks[1].append(hook)
            return RemovableHandle(OrderedDict())

        def step(self) -> None:
            for hook in self.hooks[0]:
                hook(self)
            self.inner.step()
            for hook in self.hooks[1]:
                hook(self)

    model = nn.Linear(3, 1)
    group = Group(torch.optim.SGD(model.parameters(), lr=0.1))
    hook.register_hook(model)
    hook.register_optimizer(group)
    hook.register_optimizer(group.inner)
    for _ in range(3):
        model(torch.randn(1, 3)).sum().backward()
        group.step()
    hook.close()
    assert counts(events(job), "Optimizer") == {"Group.step": 3, "SGD.step": 3}


def test_what_goes_on_for_long_holds_no_more_and_more(hook: TorchHook) -> None:
    class Trainer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.held: list[int] = []

        def forward(self, count: int) -> None:
            for _ in range(count):
                self.inner(torch.ones(1, 2)).sum().backward()
                self.held.append(len(hook._running.local.stack[0].inner))

    model = Trainer()
    hook.register_hook(model)
    model(1500)
    assert model.held[:3] == [1, 2, 3]
    assert model.held[-1] == 1000
