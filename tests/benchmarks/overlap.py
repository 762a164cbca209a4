"""What overlap_during costs for many events and intervals, and for twice as many of both.

python tests/benchmarks/overlap.py [--events 10_000_000] [--intervals 100_000] [--rounds 3]

Both lakes are made first and are on disk before a question is asked; each question is asked in a
process of its own, once of either lake in each round, so that neither is measured with what the
other left behind.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

from files import write_events

import pipeline

FILE_EVENTS = 1_000_000
BEGIN_NS = 1_600_000_000_000_000_000
"""When the first event of ``write_events`` begins."""
EVENT_GAP_NS = 8_000


def make(folder: Path, events: int) -> Path:
    """A lake of so many events."""
    folder.mkdir()
    write_events(folder / "job", events, FILE_EVENTS)
    pipeline.ingest(folder / "job", folder / "lake")
    return folder / "lake"


def ask(lake: Path, events: int, intervals: int) -> tuple[float, float, int]:
    """Seconds and megabytes of one question, and the pairs that it found."""
    gap = events * EVENT_GAP_NS // intervals
    starts = [BEGIN_NS + place * gap for place in range(intervals)]
    with pipeline.Store.open(lake) as store:
        run = store.run("job")
        start = time.perf_counter()
        answer = run.overlap_during([(begin, begin + gap // 3) for begin in starts])
        seconds = time.perf_counter() - start
    return seconds, peak_memory(), answer["pairs"].sum()


def peak_memory() -> float:
    """Megabytes of this process; ``ru_maxrss`` would begin at the peak of the one that spawned."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--intervals", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        questions = [
            (make(Path(folder) / str(times), times * asked.events), times) for times in (1, 2)
        ]
        os.sync()
        for _ in range(asked.rounds):
            took = []
            for lake, times in questions:
                events, intervals = times * asked.events, times * asked.intervals
                with multiprocessing.get_context("spawn").Pool(1) as alone:
                    seconds, peak, pairs = alone.apply(ask, (lake, events, intervals))
                print(
                    f"{events:,} events, {intervals:,} intervals: {seconds:.1f} s, "
                    f"peak memory {peak:,.0f} MB, {pairs:,} pairs"
                )
                took.append(seconds)
            ratios.append(took[1] / took[0])
    print(
        f"twice of both costs {statistics.median(ratios):.2f} times "
        f"(of {', '.join(f'{ratio:.2f}' for ratio in sorted(ratios))})"
    )


if __name__ == "__main__":
    main()
