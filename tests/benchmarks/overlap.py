"""What overlap_during costs for many events and intervals, and for twice as many of both.

python tests/benchmarks/overlap.py [--events 10_000_000] [--intervals 100_000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from files import write_events

import pipeline

FILE_EVENTS = 1_000_000


def measure(events: int, intervals: int) -> float:
    """Seconds of one question over a lake that is made for it."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        write_events(job, events, FILE_EVENTS)
        pipeline.ingest(job, Path(folder) / "lake")
        gap = events * 8000 // intervals
        starts = [1600000000000000000 + place * gap for place in range(intervals)]
        with pipeline.Store.open(Path(folder) / "lake") as store:
            run = store.run("job")
            start = time.perf_counter()
            answer = run.overlap_during([(begin, begin + gap // 3) for begin in starts])
            seconds = time.perf_counter() - start
    print(
        f"{events:,} events, {intervals:,} intervals: {seconds:.1f} s, "
        f"{answer['pairs'].sum():,} pairs"
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--intervals", type=int, default=100_000)
    asked = parser.parse_args()
    once = measure(asked.events, asked.intervals)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    twice = measure(2 * asked.events, 2 * asked.intervals)
    print(f"peak memory of the first {peak:,.0f} MB; twice of both costs {twice / once:.2f} times")


if __name__ == "__main__":
    main()
