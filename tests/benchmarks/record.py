"""What recording costs: CPU time of a process that only records, as a share of one core.

python tests/benchmarks/record.py [--seconds 30] [--interval 0.5]
"""

from __future__ import annotations

import argparse
import tempfile
import time

from pipeline.record import SystemRecorder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=float, default=0.5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, SystemRecorder(folder, asked.interval) as made:
        time.sleep(asked.interval)  # the first call of psutil reads more
        started, before = time.perf_counter(), time.process_time()
        time.sleep(asked.seconds)
        share = (time.process_time() - before) / (time.perf_counter() - started)
    print(f"{made.samples} samples, {100 * share:.2f} % of one core")


if __name__ == "__main__":
    main()
