"""How fast ingest from a bucket to a bucket is, beside the same on a disk, in one run; and what
listing a bucket again costs.

python tests/benchmarks/s3.py [--files 20] [--objects 20_000]

Starts an S3 server of its own, which shares the cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import pipeline  # noqa: E402
from pipeline.sources.listing import find_remote, settled_hours  # noqa: E402
from tests.benchmarks.files import write_events  # noqa: E402
from tests.s3.server import BUCKET, S3, s3_server  # noqa: E402

FILE_EVENTS = 120_000  # 10 MB


def timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def speed(s3: S3, folder: Path, files: int) -> None:
    """Ingest of files of 10 MB, in turns."""
    job = folder / "job"
    write_events(job, files * FILE_EVENTS, FILE_EVENTS)
    s3.files.put(f"{job}/", f"{BUCKET}/job/", recursive=True)
    size = sum(path.stat().st_size for path in job.iterdir()) / 1e6
    for turn in range(3):
        local = timed(lambda: pipeline.ingest(job, folder / f"lake{turn}"))  # noqa: B023
        remote = timed(
            lambda: pipeline.ingest(
                f"s3://{BUCKET}/job", f"s3://{BUCKET}/lake{turn}",  # noqa: B023
                storage_options=s3.options,
            )
        )  # fmt: skip
        print(f"{size:.0f} MB in {files} files: disk {local:.2f} s, bucket {remote:.2f} s, "
              f"{local / remote:.2f} of its speed")  # fmt: skip


def listing(s3: S3, objects: int) -> None:
    """The whole of a prefix, and what may still change of it; 100 objects an hour."""
    fs = s3.files
    paths = []
    for no in range(objects):
        day, hour = divmod(no // 100, 24)
        folder = f"{BUCKET}/many/framework/pevents/2020{1 + day // 28:02d}{1 + day % 28:02d}"
        paths.append(f"{folder}{hour:02d}/{no}_a_pythontimeline.json")
    for first in range(0, objects, 1000):
        fs.pipe(dict.fromkeys(paths[first : first + 1000], b"[]"))
    settled = settled_hours(paths, [], 1)
    first = timed(lambda: find_remote(fs, f"{BUCKET}/many"))
    again = timed(lambda: find_remote(fs, f"{BUCKET}/many", settled))
    print(
        f"{objects} objects: listed in {first:.2f} s, again in {again:.3f} s, {again / first:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--objects", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "s3").mkdir()
        with s3_server(place / "s3") as s3:
            speed(s3, place, asked.files)
            listing(s3, asked.objects)


if __name__ == "__main__":
    main()
