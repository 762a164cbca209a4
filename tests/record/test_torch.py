"""The hook on real models: every step, module, optimizer and batch is there, and in its step."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from pipeline.errors import UsageError
from pipeline.record import TorchHook
from tests.record.training import Net, batches, counts, events, train

pytestmark = pytest.mark.slow


def test_everything_is_there_and_in_its_step(job: Path) -> None:
    model = Net()
    with TorchHook(job, node="n1", rank=3) as hook:
        hook.register_hook(model)
        train(hook, model, 5)
        model.eval()
        with torch.no_grad():
            for x, _ in hook.wrap_dataloader(batches(2)):
                model(x)
    rows = events(job)
    assert set(rows["rank"]) == {3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 5}
    assert counts(rows, "Step:ModeKeys.EVAL") == {"Step:ModeKeys.EVAL": 2}
    modules = {"Net": 1, "conv": 1, "act": 1, "body": 1, "body.0": 1, "body.1": 1, "head": 2}
    assert counts(rows, "Forward") == {
        "CrossEntropyLoss": 5, **{name: 7 * times for name, times in modules.items()},
    }  # fmt: skip
    assert counts(rows, "Backward") == {
        "CrossEntropyLoss": 5, **{name: 5 * times for name, times in modules.items()},
    }  # fmt: skip
    assert counts(rows, "Optimizer") == {"SGD.step": 5}
    assert counts(rows, "DataIterator") == {"DataLoaderIter::GetNext": 7}
    # No step has begun where an epoch sets up its data loader.
    assert counts(rows, "DataLoaderIterInitialize") == {"DataLoaderIter.__init__": 2}
    between = rows.filter(pl.col("step_source").is_null())["process_name"].to_list()
    assert between == ["DataLoaderIterInitialize"] * 2
    for step in range(5):
        within = rows.filter((pl.col("step") == step) & (pl.col("step_mode") == "TRAIN"))
        phases = within["process_name"].to_list()
        assert list(dict.fromkeys(phases)) == [
            "Step:ModeKeys.TRAIN", "DataIterator", "Forward", "Backward", "Optimizer",
        ]  # fmt: skip
        backward = within.filter(pl.col("process_name") == "Backward")["name"].to_list()
        assert [name for name in backward if name not in ("Net", "body")] == [
            "CrossEntropyLoss", "head", "head", "body.1", "body.0", "act", "conv",
        ]  # fmt: skip


def test_a_copy_or_a_stored_model_is_not_watched(job: Path, hook: TorchHook) -> None:
    model = Net()
    hook.register_hook(model)
    twin = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model))
    for other in (twin, again):
        other(torch.randn(1, 3, 8, 8))
    model(torch.randn(1, 3, 8, 8))
    hook.close()
    assert counts(events(job), "Forward")["Net"] == 1
    model(torch.randn(1, 3, 8, 8))
    assert not model._forward_hooks


def test_of_a_compiled_model_the_whole_is_watched(job: Path, hook: TorchHook) -> None:
    model = Net()
    compiled = torch.compile(model, backend="eager")
    hook.register_hook(compiled)
    train(hook, compiled, 3)  # type: ignore[arg-type]
    hook.close()
    rows = events(job)
    assert counts(rows, "Forward") == {"OptimizedModule": 3, "CrossEntropyLoss": 3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}


def test_a_model_that_is_compiled_later_still_runs(job: Path, hook: TorchHook) -> None:
    torch._dynamo.reset()
    model = Net()
    hook.register_hook(model)
    explained = torch._dynamo.explain(model)(torch.randn(1, 3, 8, 8))
    assert explained.graph_break_count == 0
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert compiled(torch.randn(1, 3, 8, 8)).shape == (1, 4)


def test_threads_run_the_same_modules(job: Path, hook: TorchHook) -> None:
    """As DataParallel runs its replicas: at once, each with its own calls."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    hook.register_hook(model)
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(25):
            model(torch.randn(2, 8)).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hook.close()
    rows = events(job)
    forward = rows.filter(pl.col("process_name") == "Forward")
    assert dict(forward.group_by("name").len().rows()) == {
        "Sequential": 100, "0": 100, "1": 100, "2": 100,
    }  # fmt: skip
    orders = {"Forward": ["Sequential", "0", "1", "2"], "Backward": ["Sequential", "2", "1", "0"]}
    for phase, order in orders.items():
        of_phase = rows.filter(pl.col("process_name") == phase)
        assert of_phase["tid"].n_unique() == 4
        for _, own in of_phase.group_by("tid"):
            names = own.sort("ts_ns", "dur_ns", descending=[False, True])["name"].to_list()
            assert names == order * 25


def test_an_optimizer_that_runs_the_model_is_in_its_step(job: Path, hook: TorchHook) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    hook.register_hook(model)
    hook.register_optimizer(optimizer)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    hook.close()
    rows = events(job)
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}
    steps = rows.filter(pl.col("process_name") == "Optimizer")["step"].to_list()
    assert steps == [0, 1, 2]


def test_a_stored_model_needs_nothing_of_this_to_be_loaded(job: Path, hook: TorchHook) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    hook.register_hook(model)
    path = job.parent / "model.pt"
    torch.save(model, path)
    script = """
import sys, torch
sys.modules["pipeline"] = None
model = torch.load(sys.argv[1], weights_only=False)
print(model(torch.ones(1, 2)).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    assert done.stdout == "torch.Size([1, 2])\n"


def test_modules_of_two_models_have_two_names(job: Path, hook: TorchHook) -> None:
    class Generator(nn.Sequential):
        pass

    models = [Generator(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2)), Generator(nn.ReLU())]
    for model in models:
        hook.register_hook(model)
        model(torch.randn(1, 2))
    hook.close()
    assert counts(events(job), "Forward") == {
        "Generator": 1, "0": 1, "Sequential": 1, "Sequential.0": 1, "Generator_2": 1,
        "Generator_2.0": 1,
    }  # fmt: skip


def test_a_wrapped_loader_is_the_loader_to_all_who_ask(job: Path, hook: TorchHook) -> None:
    loader = batches(3)
    wrapped = hook.wrap_dataloader(loader)
    assert (len(wrapped), wrapped.batch_size, wrapped.dataset) == (3, 4, loader.dataset)
    for other in (copy.copy(wrapped), copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert type(other) is DataLoader
        assert len(list(other)) == 3
    wrapped.told = "the loader"
    assert loader.told == "the loader"
    abandoned = iter(wrapped)
    next(abandoned)
    del abandoned
    assert len(list(wrapped)) == 3
    with pytest.raises(UsageError, match="wrapped already"):
        hook.wrap_dataloader(wrapped)
    with pytest.raises(UsageError, match="int gives no batches"):
        hook.wrap_dataloader(3)
    hook.close()
    assert counts(events(job), "DataIterator") == {"DataLoaderIter::GetNext": 4}


def test_the_workers_of_a_loader_as_whatever_number_they_are(job: Path, hook: TorchHook) -> None:
    class Batches(list[torch.Tensor]):
        num_workers: Any

    for workers in (numpy.int64(0), [], "two", 3):
        batches = Batches([torch.ones(1)])
        batches.num_workers = workers
        assert len(list(hook.wrap_dataloader(batches))) == 1
        assert hook.wrap_dataloader(batches)
    assert not hook.wrap_dataloader(Batches())
    assert hook.wrap_dataloader(each for each in ())
    hook.close()
    rows = events(job).filter(pl.col("process_name") == "DataIterator")
    known = [json.loads(args).get("num_workers") for args in rows["args"]]
    assert known == [0, None, None, 3]


def test_an_optimizer_that_raises_does_not_confuse_the_next_step(
    job: Path, hook: TorchHook
) -> None:
    class Fails(torch.optim.SGD):
        fails = True

        def step(self, closure: Any = None) -> Any:
            if self.fails:
                raise ValueError("on purpose")
            return super().step(closure)

    model = nn.Linear(2, 2)
    hook.register_hook(model)
    optimizer = Fails(model.parameters(), lr=0.1)
    hook.register_optimizer(optimizer)
    for _ in range(3):
        model(torch.randn(1, 2)).sum().backward()
        with pytest.raises(ValueError, match="on purpose"):
            optimizer.step()
    optimizer.fails = False
    for _ in range(2):
        model(torch.randn(1, 2)).sum().backward()
        optimizer.step()
    hook.close()
    rows = events(job)
    # A step that did not come about goes on until one did.
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 2}
    assert counts(rows, "Optimizer") == {"Fails.step": 2}
    first, second = rows.filter(pl.col("process_name") == "Optimizer").rows(named=True)
    forward = rows.filter(pl.col("process_name") == "Forward")["end_ns"].to_list()
    assert forward[3] <= first["ts_ns"] <= first["end_ns"] <= forward[4] <= second["ts_ns"]
