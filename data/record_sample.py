"""Records the sample job in this folder: a small CNN, trained on the CPU by two ranks.

    pip install 'tracelake[torch]' && python data/record_sample.py data/cifar-cnn

Watched are every step, module, optimizer and data loader of both ranks (``TorchHook``), the
machine every 50 ms (``SystemRecorder``), and four steps by ``torch.profiler``. All numbers are
measured; nothing is made up but the images, which are random.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pipeline.record import SystemRecorder, TorchHook, torch_profiler

RANKS, STEPS, BATCH = 2, 50, 32


def train(rank: int, out: str, meeting: str) -> None:
    """What each rank does: a step in ten evaluates, the others train."""
    os.environ["RANK"] = str(rank)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.manual_seed(7 + rank)
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS
    )
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 8 * 8, 10),
    )  # fmt: skip
    parallel = nn.parallel.DistributedDataParallel(model)
    loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.01)
    count = BATCH * STEPS
    images = TensorDataset(torch.randn(count, 3, 32, 32), torch.randint(10, (count,)))
    loader = DataLoader(images, batch_size=BATCH, shuffle=True)
    with ExitStack() as stack:
        if rank == 0:
            stack.enter_context(SystemRecorder(out, interval=0.05))
        hook = stack.enter_context(TorchHook(out))
        profiler = stack.enter_context(torch_profiler(out, wait=20, active=4))
        hook.register_hook(parallel)
        hook.register_loss(loss)
        hook.register_optimizer(optimizer)
        for step, (batch, labels) in enumerate(hook.wrap_dataloader(loader)):
            parallel.train(step % 10 != 9)
            if parallel.training:
                optimizer.zero_grad()
                loss(parallel(batch), labels).backward()
                optimizer.step()
            else:
                with torch.no_grad():
                    loss(parallel(batch), labels)
            profiler.step()
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main(out: Path) -> None:
    """Record the job anew."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments = (str(out), f"{folder}/meeting")
        torch.multiprocessing.start_processes(train, arguments, nprocs=RANKS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
