"""Ingest against parsing alone: ratios in one run, on documents made from a real trace.

    pip install -e '.[bench]' && python tests/benchmarks/ingest.py TRACE.json.gz [--gb 1]
        [--repeat 3] [--files 5000] [--with-hta]

TRACE is a torch.profiler trace; its events are repeated until the document has the size. Printed
are the best of the repeats, taken in turns, since shared machines are noisy: seconds of ingest and
of orjson.loads on the same bytes, peak memory of the ingesting process, files a second for a
folder of small files, and the times of two commands.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INGEST = """
import sys, time
started = time.perf_counter()
import pipeline
report = pipeline.ingest(sys.argv[1], sys.argv[2])
seconds = time.perf_counter() - started
status = open("/proc/self/status").read()
print(seconds, int(status.split("VmHWM:")[1].split()[0]) / 1024, report.events)
"""
ORJSON = """
import gc, sys, time, orjson
text = open(sys.argv[1], 'rb').read()
gc.disable()
started = time.perf_counter()
orjson.loads(text)
print(time.perf_counter() - started)
"""
HTA = """
import sys, time
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
started = time.perf_counter()
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
print(time.perf_counter() - started)
"""


def repeat_events(trace: bytes, size: int, path: Path) -> None:
    """Write a valid document of at least ``size`` bytes from the events of ``trace``."""
    start = trace.index(b"[", trace.index(b'"traceEvents"')) + 1
    end = trace.rindex(b"]")
    head, body, tail = trace[:start], trace[start:end], trace[end:]
    with path.open("wb") as file:
        file.write(head + body)
        while file.tell() < size:
            file.write(b"," + body)
        file.write(tail)


def run(code: str, *arguments: object) -> list[float]:
    """Run ``code`` in a process of its own; the numbers that it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return [float(word) for word in subprocess.check_output(command, text=True).split()]


def timed(*command: object) -> float:
    started = time.perf_counter()
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--with-hta", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tracelake-bench-"))
    try:
        measure(options, folder)
    finally:
        shutil.rmtree(folder)


def measure(options: argparse.Namespace, folder: Path) -> None:
    trace = gzip.decompress(options.trace.read_bytes())
    document = folder / "document.json"
    repeat_events(trace, int(options.gb * 1e9), document)
    size = document.stat().st_size / 1e6
    ingests, parses = [], []
    for turn in range(options.repeat):
        ingests.append(run(INGEST, document, folder / f"lake{turn}"))
        shutil.rmtree(folder / f"lake{turn}")
        parses.append(run(ORJSON, document)[0])
    best, parse = min(seconds for seconds, *_ in ingests), min(parses)
    print(f"document            {size:8.0f} MB, {ingests[0][2]:,.0f} events")
    print(f"ingest              {best:8.2f} s, {size / best:.0f} MB/s")
    print(f"orjson.loads        {parse:8.2f} s")
    print(f"ingest / orjson     {best / parse:8.2f}")
    in_turn = [i[0] / p for i, p in zip(ingests, parses, strict=True)]
    print(f"  in each turn      {', '.join(f'{ratio:.2f}' for ratio in in_turn)}")
    print(f"peak memory         {max(memory for _, memory, _ in ingests):8.0f} MB")
    if options.with_hta:
        hta = run(HTA, document)[0]
        print(f"HTA                 {hta:8.2f} s, {hta / best:.1f} times as long as ingest")
    document.unlink()

    events = trace[trace.index(b"[", trace.index(b'"traceEvents"')) + 1 :][:20_000]
    many = folder / "many"
    many.mkdir()
    for number in range(options.files):
        (many / f"trace{number}.json").write_bytes(b"[" + events)
    seconds = run(INGEST, many, folder / "lake")[0]
    print(f"{options.files} small files   {seconds:8.2f} s, {options.files / seconds:.0f} files/s")
    version = timed(sys.executable, "-m", "pipeline", "--version")
    query = timed(sys.executable, "-m", "pipeline", "sql", "SELECT 1", "--lake", folder / "lake")
    print(f"tracelake --version {version:8.2f} s")
    print(f"tracelake sql       {query:8.2f} s")


if __name__ == "__main__":
    main()
