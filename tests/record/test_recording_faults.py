"""What goes wrong in a recording never ends the training."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn

from pipeline.errors import UsageError
from pipeline.record import TorchHook, torch_profiler
from pipeline.record.timeline import Timeline
from tests.record.training import Net, counts, events, train

pytestmark = pytest.mark.slow


def test_a_compiled_model_whose_passes_are_not_seen_is_told(
    job: Path, hook: TorchHook, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Linear(3, 1)
    hook.register_hook(model)
    model.compile(backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)
    for _ in range(3):
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
    hook.close()
    told = [record.getMessage() for record in caplog.records if "compiled" in record.getMessage()]
    assert len(told) == 1
    assert "give torch.compile(model)" in told[0]
    assert counts(events(job), "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}
    with TorchHook(job.parent / "other") as other, pytest.raises(UsageError, match="itself"):
        other.register_hook(model)


def test_a_profile_that_cannot_be_written_does_not_end_the_training(
    job: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job.mkdir()
    (job / "framework").write_text("no folder")
    with torch_profiler(job, wait=0, warmup=0, active=1, repeat=2) as profiler:
        for _ in range(3):
            torch.ones(3).sum()
            profiler.step()
    told = [r.getMessage() for r in caplog.records if "torch_profiler fails" in r.getMessage()]
    assert len(told) == 1


def test_a_fault_of_the_recording_does_not_end_the_training(
    job: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Timeline, "slice", broken)
    model = Net()
    start = copy.deepcopy(model.state_dict())
    with TorchHook(job, node="n1") as hook:
        hook.register_hook(model)
        train(hook, model, 3)
    assert not torch.equal(start["head.weight"], model.state_dict()["head.weight"])
    told = [record.getMessage() for record in caplog.records]
    assert "recording: body.0 fails and is left out while it does: broken" in told
    assert len(told) == len(set(told))


def test_what_is_no_module_and_what_is_watched_twice(hook: TorchHook) -> None:
    with pytest.raises(UsageError, match="str is no module of PyTorch"):
        hook.register_hook("model")
    with pytest.raises(UsageError, match="NoneType is no optimizer of PyTorch"):
        hook.register_optimizer(None)
    model = Net()
    hook.register_hook(model)
    with pytest.raises(UsageError, match="watched already"):
        hook.register_hook(model)


def test_without_torch_the_error_names_the_extra(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for make in (TorchHook, torch_profiler):
        with pytest.raises(UsageError, match=r"pip install 'tracelake\[torch\]'"):
            make(job)  # type: ignore[operator]


def test_recording_does_not_import_torch() -> None:
    code = "import sys, pipeline.record; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_exception_in_a_module_does_not_confuse_the_next(job: Path, hook: TorchHook) -> None:
    class Fails(nn.Module):
        fails = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.fails:
                raise ValueError("on purpose")
            return x * 2

    model = nn.Sequential(nn.Linear(2, 2), Fails())
    hook.register_hook(model)
    with pytest.raises(ValueError, match="on purpose"):
        model(torch.randn(1, 2))
    Fails.fails = False
    model(torch.randn(1, 2))
    hook.close()
    rows = events(job).filter(pl.col("process_name") == "Forward")
    assert dict(rows.group_by("name").len().rows()) == {"Sequential": 2, "0": 2, "1": 2}
    # Each inner one lies within an outer one.
    outer = rows.filter(pl.col("name") == "Sequential").select("ts_ns", "end_ns").rows()
    for ts, end in rows.filter(pl.col("name") != "Sequential").select("ts_ns", "end_ns").rows():
        assert any(a <= ts and end <= b for a, b in outer)


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
    hook.close()
    rows = events(job)
    # The first pass is in the step of the one that was interrupted, which has not ended.
    assert counts(rows, "Step:ModeKeys.EVAL") == {"Step:ModeKeys.EVAL": 3}
    assert counts(rows, "Forward") == {"Sequential": 3, "0": 4, "1": 3}


def test_a_fault_where_a_module_begins_leaves_the_outer_one(
    job: Path, hook: TorchHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(value: Any, nodes: dict[Any, None], tensor: type) -> None:
        if isinstance(value, tuple) and len(value) == 1 and value[0].shape == (1, 3):
            raise RuntimeError("broken")

    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    hook.register_hook(model)
    monkeypatch.setattr("pipeline.record.torch.add_nodes", broken)
    model(torch.randn(1, 2))
    hook.close()
    assert counts(events(job), "Forward") == {"Sequential": 1, "0": 1, "1": 1}


def test_what_torch_profiler_decides_itself(job: Path) -> None:
    with pytest.raises(UsageError, match="schedule is torch_profiler's own: give wait"):
        torch_profiler(job, schedule=None)


class Asked(defaultdict[str, Any]):
    """A batch whose attributes are its keys, each there once it is asked for."""

    __getattr__ = defaultdict.__getitem__


def test_a_batch_is_not_asked_for_what_it_may_invent(job: Path, hook: TorchHook) -> None:
    class Takes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, batch: Asked) -> torch.Tensor:
            x: torch.Tensor = self.inner(batch["x"])
            return x.sum() * len(batch)

    model, batch = Takes(), Asked(int, {"x": torch.randn(1, 2)})
    hook.register_hook(model)
    for _ in range(3):
        model(batch).backward()
    hook.close()
    assert list(batch) == ["x"]
    rows = events(job)
    assert counts(rows, "Backward") == {"Takes": 3, "inner": 3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}


def test_torchscript_is_refused_as_a_model_and_left_out_within_one(
    job: Path, hook: TorchHook
) -> None:
    scripted = torch.jit.script(nn.Linear(2, 2))
    with pytest.raises(UsageError, match="is TorchScript, which takes no hooks"):
        hook.register_hook(scripted)
    model = nn.Sequential(nn.Linear(2, 2), scripted)
    hook.register_hook(model)
    model(torch.randn(1, 2))
    hook.close()
    assert counts(events(job), "Forward") == {"Sequential": 1, "0": 1}


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
    assert len(hook._running.stack) == 1
    for x in hook.wrap_dataloader([torch.randn(1, 3)] * 3):
        assert hook._running.stack == []
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
    assert len(hook._running.stack) == 2
    interrupted.is_now = False
    for _ in range(3):
        model(torch.randn(1, 2)).sum().backward()
        optimizer.step()
        assert hook._running.stack == []
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
