"""What goes wrong in a recording never ends the training."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn

from pipeline.errors import UsageError
from pipeline.record import TorchHook, torch_profiler
from pipeline.record.files import hour_of
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


@pytest.mark.parametrize("steps", [{"active": 0}, {"wait": -1}, {"warmup": "1"}, {"repeat": 1.5}])
def test_numbers_of_steps_that_make_no_sense(job: Path, steps: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(steps))} of .* steps: give a whole number"):
        torch_profiler(job, **steps)


def test_what_torch_profiler_decides_itself(job: Path) -> None:
    with pytest.raises(UsageError, match="schedule is torch_profiler's own: give wait"):
        torch_profiler(job, schedule=None)


@pytest.mark.parametrize("ends", [True, False])
def test_what_cannot_be_told_of_a_slice_costs_nothing_but_itself(
    job: Path, caplog: pytest.LogCaptureFixture, ends: bool
) -> None:
    """Whoever writes it: the next slice, or the thread that writes what waits."""
    timeline = Timeline(job, "n1")
    start = time.perf_counter_ns()
    timeline.slice("Forward", "before", start, start + 1)
    timeline.slice("Backward", "odd", start + 2, start + 3, (("what", object()),))
    timeline.slice("Backward", "odd", start + 4, start + 5, (("what", []),))
    timeline.slice("Backward", "after", start + 6, start + 7)
    timeline.later(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    timeline.later(lambda: [("Forward", "last", start + 8, start + 9, (), (1, "thread"))])
    if ends:
        timeline.close()
    until = time.monotonic() + 30
    while '"last"' not in "".join(path.read_text() for path in job.rglob("*.json*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [record.getMessage().partition(" fails")[0] for record in caplog.records] == [
        "recording: Backward", "recording: slices",
    ]  # fmt: skip
    if not ends:
        timeline.slice("Forward", "still", start + 10, start + 11)
    timeline.close()
    rows = events(job)
    assert counts(rows, "Backward") == {"after": 1}
    assert set(counts(rows, "Forward")) == {"before", "last"} | (set() if ends else {"still"})


def test_a_closed_hook_watches_nothing(job: Path) -> None:
    hook = TorchHook(job)
    hook.close()
    model = nn.Linear(2, 2)
    for watch, what in (
        (hook.register_hook, model),
        (hook.register_loss, model),
        (hook.register_optimizer, torch.optim.SGD(model.parameters(), lr=0.1)),
        (hook.wrap_dataloader, [1]),
    ):
        with pytest.raises(UsageError, match="this hook is closed: make another one"):
            watch(what)
    assert not model._forward_hooks


def test_a_module_that_has_compiled_itself_is_told(
    job: Path, hook: TorchHook, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    model[1].compile(backend="eager")
    hook.register_hook(model)
    (told,) = (record.getMessage() for record in caplog.records)
    assert told.startswith("recording: 1 fails and is left out while it does: it has compiled")
    model(torch.randn(1, 2)).sum().backward()
    hook.close()
    rows = events(job)
    assert counts(rows, "Forward") == {"Sequential": 1, "0": 1}
    assert counts(rows, "Backward") == {"Sequential": 1, "0": 1}


def test_a_file_in_the_place_of_a_folder_does_not_hold_up_the_training(
    job: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = job / "framework" / "pevents"
    folder.mkdir(parents=True)
    now = time.time()
    for hour in (now, now + 3600):
        (folder / hour_of(hour)).write_text("no folder")
    model = nn.Linear(2, 2)
    with TorchHook(job, "n1") as hook:
        hook.register_hook(model)
        model(torch.randn(1, 2))
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("recording: write fails")
    assert all("Not a directory" in text for text in told)


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
