"""The hook on real models: every step, module, optimizer and batch is there, and in its step."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import pipeline
from pipeline.errors import UsageError
from pipeline.record import SystemRecorder, TorchHook, torch_profiler
from pipeline.record.timeline import Timeline

pytestmark = pytest.mark.slow


class Net(nn.Module):
    """Nested modules, one used twice, and two that change their input in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.act = nn.ReLU(inplace=True)
        self.body = nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(inplace=True))
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.act(self.conv(x))).mean((2, 3))
        return self.head(self.head(x))


def batches(count: int, workers: int = 0) -> DataLoader[Any]:
    data = TensorDataset(torch.randn(4 * count, 3, 8, 8), torch.randint(0, 4, (4 * count,)))
    return DataLoader(data, batch_size=4, num_workers=workers)


def train(hook: TorchHook, model: nn.Module, count: int, optimize: bool = True) -> None:
    loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    hook.register_loss(loss)
    if optimize:
        hook.register_optimizer(optimizer)
    for x, y in hook.wrap_dataloader(batches(count)):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def events(job: Path) -> pl.DataFrame:
    """All events of a job, each with the step that holds it."""
    lake = job.parent / f"lake-{job.name}"
    report = pipeline.ingest(job, lake, "job")
    assert (report.rejected, report.failed) == (0, ())
    with pipeline.Store.open(lake) as store:
        return store.sql("SELECT * FROM step_events('job') ORDER BY ts_ns, dur_ns DESC")


def counts(rows: pl.DataFrame, phase: str) -> dict[str, int]:
    of_phase = rows.filter(pl.col("process_name") == phase)
    return dict(of_phase.group_by("name").len().rows())


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "job"


@pytest.fixture
def hook(job: Path) -> Iterator[TorchHook]:
    with TorchHook(job, node="n1") as hook:
        yield hook


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
    assert rows.filter(pl.col("step_source").is_null()).is_empty()
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
    stored = io.BytesIO()
    torch.save(model, stored)
    again = pickle.loads(pickle.dumps(model))
    for other in (twin, again):
        other(torch.randn(1, 3, 8, 8))
    model(torch.randn(1, 3, 8, 8))
    hook.close()
    assert counts(events(job), "Forward")["Net"] == 1
    model(torch.randn(1, 3, 8, 8))
    assert not model._forward_hooks


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
    again = rows.filter(pl.col("args").str.contains("recomputed"))
    assert again["name"].to_list() == ["second"] * 3
    assert counts(rows, "Backward") == {"Checked": 3, "first": 3, "second": 3}
    assert counts(rows, "Step:ModeKeys.TRAIN") == {"Step:ModeKeys.TRAIN": 3}


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
    assert forward["tid"].n_unique() == 4
    for _, own in forward.group_by("tid"):
        names = own.sort("ts_ns", "dur_ns", descending=[False, True])["name"].to_list()
        assert names == ["Sequential", "0", "1", "2"] * 25


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


def test_what_is_no_module_and_what_is_watched_twice(hook: TorchHook) -> None:
    with pytest.raises(UsageError, match="str is no module of PyTorch"):
        hook.register_hook("model")
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


@pytest.mark.parametrize("limit", [{"max_bytes": 500}, {"max_seconds": 0.3}])
def test_files_are_closed_when_they_are_large_or_old(job: Path, limit: dict[str, Any]) -> None:
    timeline = Timeline(job, "n1", **limit)
    second = 10**9
    for tick in range(40):
        timeline.slice("phase", f"event {tick}", tick * second // 4, tick * second // 4 + 100)
    timeline.close()
    files = sorted(job.rglob("*_pythontimeline.json"))
    assert len(files) > 4
    names = [e["name"] for f in files for e in json.loads(f.read_text()) if e["ph"] == "X"]
    assert names == [f"event {tick}" for tick in range(40)]
    ends = [int(path.name.partition("_")[0]) for path in files]
    assert ends == sorted(ends)
    assert (job / "framework" / "training_job_end.ts").exists()


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
    assert counts(rows, "Backward") == {"Sequential": 6, "0": 6}
    assert rows.filter(pl.col("process_name") == "Backward")["dur_ns"].min() > 0  # type: ignore[operator]


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


def test_a_file_that_can_grow_no_more_is_followed_by_another(job: Path) -> None:
    """As where the disk is full for a while: what was written is read, and what comes after."""
    script = """
import resource, sys
from pipeline.record.timeline import Timeline
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
timeline = Timeline(sys.argv[1], "n1")
for number in range(1_100):
    timeline.slice("Forward", f"m{number}", number * 1_000_000, number * 1_000_000 + 1)
timeline.close()
"""
    subprocess.run([sys.executable, "-c", script, str(job)], check=True)
    paths = list(job.glob("framework/pevents/*/*.json*"))
    assert sorted(path.suffix for path in paths) == [".json", ".tmp", ".tmp"]
    report = pipeline.ingest(job, job.parent / "lake")
    assert report.failed == ()
    with pipeline.Store.open(job.parent / "lake") as store:
        names = store.sql("SELECT name FROM events ORDER BY ts_ns")["name"].to_list()
    # Of each file that was full the events of its last quarter of a second may be missing.
    assert (names[0], names[-1], len(names)) == ("m0", "m1099", len(set(names)))
    assert len(names) >= 1_100 - 251 * 2


def test_what_a_training_did_before_it_hangs_is_in_the_file(job: Path) -> None:
    timeline = Timeline(job, "n1")
    for number in range(20):
        timeline.slice("Forward", f"m{number}", number * 1_000_000, number * 1_000_000 + 1)
    until = time.monotonic() + 30
    while '"m19"' not in "".join(path.read_text() for path in job.rglob("*.json.tmp")):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert pipeline.ingest(job, job.parent / "lake", job_ended=True).events == 20
    timeline.close()


TRAINING = """
import sys, torch
from torch import nn
from pipeline.record import SystemRecorder, TorchHook
recorder = SystemRecorder(sys.argv[1], 0.05, node="n1").start()
hook = TorchHook(sys.argv[1], node="n1")
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
hook.register_hook(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hook.register_optimizer(optimizer)
for step in range(int(sys.argv[2])):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    if step == 300:
        print("ready", flush=True)
"""


def test_what_a_killed_training_leaves_is_read_to_its_last_whole_event(job: Path) -> None:
    command = [sys.executable, "-c", TRAINING, str(job), "100000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while not any(path.stat().st_size > 100_000 for path in job.rglob("*timeline.json.tmp")):
            pass
        process.send_signal(signal.SIGKILL)
    (path,) = job.rglob("*timeline.json.tmp")
    whole = [json.loads(line.rstrip(",")) for line in path.read_text().splitlines()[1:-1]]
    written = Counter(event["name"] for event in whole if event["ph"] == "X")
    lake = job.parent / "lake"
    assert pipeline.ingest(job, lake, "job", job_ended=True).failed == ()
    with pipeline.Store.open(lake) as store:
        found = Counter(store.sql("SELECT name FROM events")["name"].to_list())
        assert store.run("job").metrics().height > 0
    assert written["Step:ModeKeys.TRAIN"] > 100
    assert sum((found - written).values()) <= 1
    assert not written - found


def test_two_ranks_each_have_their_steps(job: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(job), str(20 + 10 * rank)],
            env={**os.environ, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    assert [rank.wait() for rank in ranks] == [0, 0]
    assert (job / "framework" / "training_job_end.ts").exists()
    steps = events(job).filter(pl.col("process_name") == "Step:ModeKeys.TRAIN")
    assert dict(steps.group_by("rank").len().rows()) == {0: 20, 1: 30}


def test_hook_recorder_and_profiler_together(job: Path) -> None:
    """Counted in the training loop, and in SQL; all on one clock."""
    model = Net()
    loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    done: Counter[str] = Counter()
    began = time.time_ns()
    with (
        SystemRecorder(job, 0.05) as recorder,
        TorchHook(job, rank=0) as hook,
        torch_profiler(job, rank=0, wait=2, warmup=1, active=3) as profiler,
    ):
        hook.register_hook(model)
        hook.register_loss(loss)
        hook.register_optimizer(optimizer)
        for x, y in hook.wrap_dataloader(batches(12, workers=1)):
            done["batches"] += 1
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            done["steps"] += 1
            profiler.step()
    ended = time.time_ns()
    lake = job.parent / "lake"
    report = pipeline.ingest(job, lake)
    assert (report.runs, report.failed, report.rejected) == (("job",), (), 0)
    assert set(report.files_by_format) == {"kineto", "smdebug", "system"}
    with pipeline.Store.open(lake) as store:
        assert store.runs()["nodes"].to_list() == [1]
        run = store.run("job")
        steps = run.steps()
        train = steps.filter(pl.col("mode") == "TRAIN")
        assert train.height == done["steps"] == 12
        assert run.metrics().height == recorder.samples
        for phase, of_a_step in (("Forward", 9), ("Backward", 9), ("Optimizer", 1)):
            found = store.sql(f"FROM events WHERE process_name = '{phase}'")
            assert (phase, found.height) == (phase, of_a_step * done["steps"])
        # The profiler sees its own three of them too.
        calls = store.sql(
            "SELECT process_name = 'DataIterator', count(*) FROM dataloader_calls GROUP BY ALL"
        )
        assert dict(calls.rows()) == {True: done["batches"], False: 3}
        profiled = steps.filter(pl.col("mode") == "ProfilerStep")
        assert profiled.height == 3
        # One clock: what the profiler saw lies in the span of the hook's steps, step by step.
        first, last = train["start_ns"].min(), train["end_ns"].max()
        assert first is not None and last is not None
        slack = 5_000_000
        for start, end in profiled.select("start_ns", "end_ns").rows():
            assert first - slack <= start <= end <= last + slack * 20
        samples = run.metrics()["ts_ns"]
        assert began <= samples.min() <= samples.max() <= ended  # type: ignore[operator]
        inside = store.sql(
            "SELECT count(*) FROM step_events('job') WHERE step IS NULL AND "
            "process_name IN ('Forward', 'Backward', 'Optimizer', 'DataIterator')"
        )
        assert inside.item() == 0
