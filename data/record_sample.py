"""Records the sample job in this folder: a small CNN trained on the CPU, watched three ways.

    pip install torch psutil && python data/record_sample.py data/cifar-cnn

Written are: the framework timeline of every step (the smdebug layout, with forward, backward,
optimizer and dataloader), system metrics every 100 ms (the smdebug system layout), and a
torch.profiler trace of a few steps (Kineto). All numbers are measured; nothing is made up but
the images, which are random.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, TensorDataset

NODE = socket.gethostname()
STEPS = 100
PROFILED = (20, 24)
PHASES = (
    "Step:ModeKeys.TRAIN",
    "Step:ModeKeys.EVAL",
    "Forward",
    "Backward",
    "Optimizer",
    "DataIterator",
)


def hour_folder(root: Path, seconds: float) -> Path:
    """Folder of the UTC hour, made if it is not there."""
    folder = root / f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Timeline:
    """Collects slices and writes them as one smdebug timeline file."""

    def __init__(self) -> None:
        self.base_us = time.time_ns() // 1000
        self.events: list[dict[str, object]] = []

    @contextmanager
    def slice(self, phase: str, name: str, step: int) -> Iterator[None]:
        """Time what happens inside."""
        start = time.time_ns() // 1000
        yield
        end = time.time_ns() // 1000
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "pid": PHASES.index(phase) + 1,
                "tid": 0,
                "ts": start - self.base_us,
                "dur": end - start,
                "args": {"pid": os.getpid(), "step_num": str(step)},
            }
        )

    def write(self, root: Path) -> None:
        """Write the file, named after its end as smdebug does."""
        end_us = time.time_ns() // 1000
        head: list[dict[str, object]] = [
            {
                "name": "process_name",
                "ph": "M",
                "pid": 0,
                "args": {"start_time_since_epoch_in_micros": self.base_us},
            }
        ]
        head += [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": phase}}
            for number, phase in enumerate(PHASES, start=1)
        ]
        folder = hour_folder(root / "framework" / "pevents", end_us / 1e6)
        path = folder / f"{end_us}_{os.getpid()}-{NODE}_pythontimeline.json"
        lines = ",\n".join(json.dumps(event) for event in head + self.events)
        path.write_text(f"[\n{lines}\n]\n")


def sample_system(root: Path, done: threading.Event) -> None:
    """Write one line a metric every 100 ms until ``done``."""
    start = time.time()
    folder = hour_folder(root / "system" / "incremental", start)
    psutil.cpu_percent(percpu=True)
    with (folder / f"{int(start)}.{NODE}.json").open("w") as file:
        while not done.wait(0.1):
            now = time.time()
            samples = [
                ("cpu", f"cpu{number}", "CPUUtilization", value)
                for number, value in enumerate(psutil.cpu_percent(percpu=True))
            ]
            samples.append(
                ("memory", "memory", "MemoryUsedPercent", psutil.virtual_memory().percent)
            )
            for kind, name, dimension, value in samples:
                file.write(
                    json.dumps(
                        {
                            "Type": kind,
                            "Name": name,
                            "Dimension": dimension,
                            "Value": value,
                            "NodeId": NODE,
                            "Timestamp": now,
                        }
                    )
                    + "\n"
                )


def main(out: Path) -> None:
    """Train and record."""
    shutil.rmtree(out, ignore_errors=True)
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = TensorDataset(torch.randn(64 * STEPS, 3, 32, 32), torch.randint(10, (64 * STEPS,)))
    loader = iter(DataLoader(images, batch_size=64, shuffle=True))

    done = threading.Event()
    sampler = threading.Thread(target=sample_system, args=(out, done))
    sampler.start()
    timeline = Timeline()
    profiler = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=PROFILED[0], warmup=1, active=PROFILED[1] - PROFILED[0], repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(out / "kineto.json")),
    )
    with profiler:
        for step in range(STEPS):
            mode = "Step:ModeKeys.EVAL" if step % 10 == 9 else "Step:ModeKeys.TRAIN"
            with timeline.slice(mode, mode, step):
                with timeline.slice("DataIterator", "next", step):
                    batch, labels = next(loader)
                with timeline.slice("Forward", "model", step):
                    loss = nn.functional.cross_entropy(model(batch), labels)
                if mode == "Step:ModeKeys.TRAIN":
                    with timeline.slice("Backward", "loss", step):
                        loss.backward()
                    with timeline.slice("Optimizer", "SGD.step", step):
                        optimizer.step()
                        optimizer.zero_grad()
            profiler.step()
    done.set()
    sampler.join()
    timeline.write(out)
    trace = out / "kineto.json"
    with gzip.GzipFile(out / f"{NODE}_rank0.pt.trace.json.gz", "wb", mtime=0) as file:
        file.write(trace.read_bytes())
    trace.unlink()
    (out / "framework" / "training_job_end.ts").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
