"""How much longer the steps of a small CNN on a CPU take with the hook.

A model and its copy take turns, step by step, one of them watched: what the machine does besides
meets both, and both learn the same, since how long pooling takes depends on the numbers. Memory
stays with the process (as with MALLOC_TRIM_THRESHOLD_), or the way in which freed pages go back to
the system and come again would decide, which differs from run to run.

python tests/benchmarks/hook.py [--steps 400] [--batch 64] [--threads 2] [--unwatched]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time

import torch
from torch import nn

from pipeline.record import TorchHook

MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "256000000",
}
Training = tuple[nn.Module, torch.optim.Optimizer]


def training() -> Training:
    torch.manual_seed(7)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 64, 10),
    )  # fmt: skip
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def step(training: Training, x: torch.Tensor, y: torch.Tensor) -> int:
    """Nanoseconds of one step."""
    model, optimizer = training
    start = time.perf_counter_ns()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    return time.perf_counter_ns() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--unwatched", action="store_true", help="what the noise is")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    x, y = torch.randn(asked.batch, 3, 32, 32), torch.randint(0, 10, (asked.batch,))
    watched, plain = training(), training()
    for _ in range(20):
        step(watched, x, y)
        step(plain, x, y)
    times: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as folder, TorchHook(folder) as hook:
        if not asked.unwatched:
            hook.register_hook(watched[0])
            hook.register_optimizer(watched[1])
        for turn in range(asked.steps):
            if turn % 2:
                times.append((step(watched, x, y), step(plain, x, y)))
            else:
                times.append((step(plain, x, y), step(watched, x, y))[::-1])
    more = statistics.median(with_hook - without for with_hook, without in times)
    ratio = statistics.median(with_hook / without for with_hook, without in times)
    print(
        f"{statistics.median(without for _, without in times) / 1e6:.1f} ms a step, with the hook "
        f"{more / 1000:.0f} us more, {ratio:.3f} times as long (medians of {asked.steps} pairs)"
    )


if __name__ == "__main__":
    if MEMORY.keys() - os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MEMORY})
    main()
