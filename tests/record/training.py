"""A small model, its training, and what a hook wrote of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pipeline
from pipeline.record import TorchHook


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


def spans(rows: pl.DataFrame, name: str) -> list[tuple[int, int]]:
    """Start and end in nanoseconds of the backward passes of a module."""
    found = rows.filter((pl.col("process_name") == "Backward") & (pl.col("name") == name))
    return found.sort("ts_ns").select("ts_ns", "end_ns").rows()
