"""Backward passes of real models: how many, in which order, and when they end."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pipeline.record import TorchHook
from pipeline.record.backward import add_nodes
from tests.record.training import Net, counts, events, spans

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_is_computed_again(job: Path, hook: TorchHook, reentrant: bool) -> None:
    class Checked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> Any:
            return checkpoint(self.second, self.first(x), use_reentrant=reentrant)

    model = Checked()
    hook.register_hook(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)
    for _ in range(3):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    hook.close()
    rows = events(job)
    assert counts(rows, "Forward") == {"Checked": 3, "first": 3, "second": 6}
    again = rows.filter(rows["args"].str.contains("recomputed"))
    assert again["name"].to_list() == ["second"] * 3
    assert counts(rows, "Backward") == {"Checked": 3, "first": 3, "second": 3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}


def test_an_input_in_a_dict_and_as_a_keyword(job: Path, hook: TorchHook) -> None:
    class Inner(nn.Module):
        def forward(self, *, state: dict[str, torch.Tensor]) -> dict[str, Any]:
            return {"out": (state["x"] * 2, None)}

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.inner = nn.Linear(2, 2), Inner()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.inner(state={"x": self.first(x)})["out"][0]
            return out.sum()

    model = Outer()
    hook.register_hook(model)
    model(torch.randn(1, 2)).backward()
    hook.close()
    assert counts(events(job), "Backward") == {"Outer": 1, "inner": 1, "first": 1}


def test_two_hooks_in_one_process_each_have_their_own(job: Path) -> None:
    """On one model, and on two of which the second takes what the first gives."""
    first, second = nn.Sequential(nn.Linear(3, 3)), nn.Sequential(nn.Linear(3, 3))
    jobs = [job, job.parent / "job2"]
    with TorchHook(jobs[0], "n") as one, TorchHook(jobs[1], "n") as two:
        one.register_hook(first)
        two.register_hook(first)
        two.register_hook(second)
        for _ in range(3):
            second(first(torch.randn(4, 3))).sum().backward()
    assert counts(events(jobs[0]), "Backward") == {"Sequential": 3, "0": 3}
    rows = events(jobs[1])
    assert counts(rows, "Backward") == {
        "Sequential": 3, "0": 3, "Sequential_2": 3, "Sequential_2.0": 3,
    }  # fmt: skip
    assert rows.filter(pl.col("process_name") == "Backward")["dur_ns"].min() > 0  # type: ignore[operator]


@pytest.mark.parametrize(
    "shared", [nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64), nn.ReLU())]
)
def test_a_module_that_is_called_twice_on_data_has_two_passes(
    job: Path, hook: TorchHook, shared: nn.Module
) -> None:
    """As in siamese networks: neither input needs a gradient, the parameters get one sum."""

    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared, self.head = shared, nn.Linear(64, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(self.shared(x)) - self.head(self.shared(y))
            return out.sum()

    model = Siamese()
    hook.register_hook(model)
    model(torch.randn(512, 64), torch.randn(512, 64)).backward()
    hook.close()
    rows = events(job)
    first, second = spans(rows, "shared")
    assert first[0] < first[1] <= second[0] < second[1]
    ((start, end),) = spans(rows, "Siamese")
    assert start <= first[0]
    assert second[1] <= end


def test_a_module_that_cuts_off_its_input_has_a_pass_that_takes_time(
    job: Path, hook: TorchHook
) -> None:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.detach())

    for model in (nn.Sequential(nn.Linear(8, 8), Cut(8, 8)), nn.Sequential(Cut(8, 8), nn.ReLU())):
        hook.register_hook(model)
        model(torch.randn(64, 8)).sum().backward()
    hook.close()
    rows = events(job)
    assert counts(rows, "Backward") == {
        "Sequential": 1, "1": 1, "Sequential_2": 1, "Sequential_2.0": 1, "Sequential_2.1": 1,
    }  # fmt: skip
    assert all(start < end for name in ("1", "Sequential_2.0") for start, end in spans(rows, name))


def test_a_graph_that_is_run_twice_has_passes_twice(job: Path, hook: TorchHook) -> None:
    """As with ``retain_graph``, and where the gradient is differentiated itself."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    hook.register_hook(model)
    out = model(torch.randn(4, 8)).sum()
    out.backward(retain_graph=True)
    out.backward()
    x = torch.randn(4, 8, requires_grad=True)
    out = model(x).sum()
    (gradient,) = torch.autograd.grad(out, x, create_graph=True)
    (out + gradient.pow(2).sum()).backward()
    hook.close()
    rows = events(job)
    assert counts(rows, "Backward") == {"Sequential": 4, "0": 4, "1": 4, "2": 4}
    outer = spans(rows, "Sequential")
    assert all(before[1] <= after[0] for before, after in pairwise(outer))
    for name in ("0", "1", "2"):
        for (start, end), (first, last) in zip(spans(rows, name), outer, strict=True):
            assert first <= start < end <= last


def test_a_pass_that_fails_leaves_the_next_alone(job: Path, hook: TorchHook) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, fails: bool) -> torch.Tensor:
            ctx.fails = fails
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if ctx.fails:
                raise ValueError("on purpose")
            return *gradients, None

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, fails: bool) -> torch.Tensor:
            out: torch.Tensor = self.second(Fails.apply(self.first(x), fails))
            return out.sum()

    model = Model()
    hook.register_hook(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)
    with pytest.raises(ValueError, match="on purpose"):
        model(torch.randn(2, 2), True).backward()
    # Nothing of a pass is kept for longer than its step.
    optimizer.step()
    assert hook._backward._came == {}
    model(torch.randn(2, 2), False).backward()
    optimizer.step()
    hook.close()
    rows = events(job)
    in_step = rows.filter(pl.col("process_name") == "Backward").sort("ts_ns", "name")
    assert in_step["step"].to_list() == [0, 0, 1, 1, 1]
    assert counts(rows, "Backward") == {"Model": 2, "second": 2, "first": 1}
    (failed, whole) = spans(rows, "Model")
    assert failed[1] <= whole[0]
    assert whole[1] == spans(rows, "first")[0][1]


def test_outputs_in_a_dataclass(job: Path, hook: TorchHook) -> None:
    @dataclass
    class Output:
        logits: torch.Tensor
        hidden: tuple[torch.Tensor, ...]

    class Inner(nn.Linear):
        def forward(self, x: torch.Tensor) -> Output:  # type: ignore[override]
            return Output(super().forward(x), (x,))

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner(2, 2)

        def forward(self, x: torch.Tensor) -> Output:
            out: Output = self.inner(x)
            return out

    model = Outer()
    hook.register_hook(model)
    model(torch.randn(1, 2)).logits.sum().backward()
    hook.close()
    assert counts(events(job), "Backward") == {"Outer": 1, "inner": 1}


def test_a_model_that_is_gone_is_let_go(hook: TorchHook) -> None:
    model = Net()
    hook.register_hook(model)
    model(torch.randn(4, 3, 8, 8)).sum().backward()
    gone = [weakref.ref(model), *map(weakref.ref, model.parameters())]
    del model
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


def test_a_module_that_keeps_a_state_ends_each_pass_itself(job: Path, hook: TorchHook) -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(4))
            self.state = torch.zeros(2, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.state = torch.tanh(x + self.state @ self.weight)
            return self.state

    model = Cell()
    hook.register_hook(model)
    for _ in range(5):
        out = model(torch.randn(2, 4))
    out.sum().backward()
    hook.close()
    passes = spans(events(job), "Cell")
    assert len(passes) == 5
    assert all(before[1] <= after[0] for before, after in pairwise(passes))


def test_an_output_that_is_the_input_is_no_pass_of_its_own(job: Path, hook: TorchHook) -> None:
    """As of a module that gives something besides, which nobody uses here."""

    class Besides(nn.Linear):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
            return x, super().forward(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.besides, self.last = (
                nn.Linear(4, 4), Besides(4, 4), nn.Linear(4, 1),
            )  # fmt: skip

        def forward(self, x: torch.Tensor, uses: bool) -> torch.Tensor:
            x, more = self.besides(self.first(x))
            out: torch.Tensor = self.last(x)
            return out.sum() + more.sum() if uses else out.sum()

    model = Model()
    hook.register_hook(model)
    model(torch.randn(2, 4), False).backward()
    model(torch.randn(2, 4), True).backward()
    hook.close()
    assert counts(events(job), "Backward") == {"Model": 2, "first": 2, "last": 2, "besides": 1}


def test_what_a_batch_holds_is_looked_at_as_far_as_there_can_be_tensors() -> None:
    class Numbers(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError

    @dataclass
    class Node:
        value: torch.Tensor
        others: list[Node]

    tensor = torch.ones(2, requires_grad=True) * 2
    # Each with all others: as many ways through them as atoms in the universe.
    nodes_of_graph = [Node(tensor * number, []) for number in range(100)]
    for node in nodes_of_graph:
        node.others = nodes_of_graph
    deep: Any = tensor
    for _ in range(5000):
        deep = [deep]
    for given, count in (
        (Numbers(range(1000)), 0), ([tensor] * 1000, 1), ([None, *[tensor] * 100], 1),
        (nodes_of_graph, 100), (nodes_of_graph[0], 100), (deep, 1), ({"x": (tensor, 5)}, 1),
    ):  # fmt: skip
        nodes: dict[Any, None] = {}
        add_nodes((given,), nodes, torch.Tensor)
        assert len(nodes) == count
