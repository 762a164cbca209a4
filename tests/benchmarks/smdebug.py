"""How much faster the old frame API is on a lake than in smdebug 1.0.34, in one run.

python tests/benchmarks/smdebug.py JOB --peer PYTHON

JOB is a folder of raw traces; PYTHON an interpreter of an environment with smdebug and pandas 1.
Each side is a process of its own that does the same three things; the first time of ours is with
the ingest, the second on the lake that is there then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = """
import json, logging, sys, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
{imports}
job = sys.argv[1]
times = {{}}
def timed(name, work):
    start = time.perf_counter()
    result = work()
    times[name] = time.perf_counter() - start
    return result
def load():
    return PandasFrame(job).get_all_framework_metrics()
timed("frame, first", load)
frame = PandasFrame(job)
timed("frame", frame.get_all_framework_metrics)
system = frame.get_all_system_metrics()
low = system[(system["dimension"] == "GPUUtilization") & (system["value"] < 2)]
instants = sorted(low["timestamp"])
timed("overlap", lambda: frame.get_framework_metrics_by_timesteps(instants))
timed("by step", lambda: frame.get_profiler_data_by_step(10, 20))
print("\\n" + json.dumps({{"instants": len(instants), **times}}))
"""
OURS = "from pipeline.compat.smdebug import PandasFrame"
THEIRS = "from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame"


def measure(python: str, imports: str, job: str) -> dict[str, float]:
    """Seconds of each of the three."""
    command = [python, "-c", WORK.format(imports=imports), job]
    output = subprocess.check_output(command, cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
    return json.loads(output.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="folder of raw traces")
    parser.add_argument("--peer", required=True, help="python of an environment with smdebug")
    asked = parser.parse_args()
    ours = measure(sys.executable, OURS, asked.job)
    theirs = measure(asked.peer, THEIRS, asked.job)
    print(f"{ours.pop('instants')} instants, smdebug finds {theirs.pop('instants')}")
    for name, seconds in ours.items():
        print(f"{name}: {seconds:.2f} s, smdebug {theirs[name]:.1f} s, "
              f"{theirs[name] / seconds:.0f} times")  # fmt: skip


if __name__ == "__main__":
    main()
