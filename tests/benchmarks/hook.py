"""How much longer the steps of a small CNN on a CPU take with the hook, in turns of one run.

python tests/benchmarks/hook.py [--turns 20] [--steps 20]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

import torch
from torch import nn

from pipeline.record import TorchHook


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> float:
    """Seconds for so many steps of training."""
    x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    start = time.perf_counter()
    for _ in range(count):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20)
    asked = parser.parse_args()
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps(model, optimizer, asked.steps)
    ratios, plain = [], []
    for _ in range(asked.turns):
        before = steps(model, optimizer, asked.steps)
        with tempfile.TemporaryDirectory() as folder, TorchHook(folder) as hook:
            hook.register_hook(model)
            hook.register_optimizer(optimizer)
            watched = steps(model, optimizer, asked.steps)
        ratios.append(watched / ((before + steps(model, optimizer, asked.steps)) / 2))
        plain.append(before / asked.steps)
    print(
        f"{1000 * statistics.median(plain):.1f} ms a step, with the hook "
        f"{statistics.median(ratios):.3f} times as long (median of {asked.turns} turns)"
    )


if __name__ == "__main__":
    main()
