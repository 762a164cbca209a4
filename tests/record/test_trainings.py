"""Whole trainings in processes of their own, and with everything that can record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import nn

import pipeline
from pipeline.record import SystemRecorder, TorchHook, torch_profiler
from tests.record.training import Net, batches, events

pytestmark = pytest.mark.slow

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
            "SELECT activity, process_name = 'DataIterator', count(*) FROM dataloader_calls "
            "GROUP BY ALL ORDER BY ALL"
        )
        assert calls.rows() == [
            ("get_next", False, 3), ("get_next", True, done["batches"]), ("iterator", False, 1),
        ]  # fmt: skip
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
