"""A job that is followed while three nodes write it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.errors import NoMoreProfilerData, StorageError
from pipeline.follow import JobFollower
from tests.compat.jobs import BASE, event, write_framework, write_system
from tests.flows.helpers import artifacts, rows_of
from tests.s3.server import BUCKET, S3, unreliable

# A job: every node closes its files by renaming them, node n2 lags 90 s behind, the last file of
# n1 stays open, and the end is marked last. It goes on when the lake has what was written so far.
WRITER = """
import json, sys, time
from pathlib import Path
job, base, lake = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
folder = job / "framework" / "pevents" / "2020080522"
folder.mkdir(parents=True)
for no in range(6):
    for node, late in (("n0", 0), ("n1", 0), ("n2", 90_000_000)):
        first = no * 10_000_000 - late
        events = [
            {"ph": "M", "name": "process_name", "pid": 0,
             "args": {"start_time_since_epoch_in_micros": base}},
            *({"ph": "X", "name": f"op{n}", "pid": 1, "tid": 1, "ts": first + n, "dur": 3}
              for n in range(20)),
        ]
        path = folder / f"{base + first}_7-{node}_pythontimeline.json"
        temporary = path.with_name(path.name + ".tmp")
        with temporary.open("w") as file:
            file.write("[" + ",\\n".join(map(json.dumps, events[:5])))
            file.flush()
            time.sleep(0.02)
            file.write(",\\n" + ",\\n".join(map(json.dumps, events[5:])))
            if (no, node) != (5, "n1"):
                file.write("]")
        if (no, node) != (5, "n1"):
            temporary.rename(path)
    # The ledger starts with one empty file.
    while len(list(lake.glob("sources/*.parquet"))) < 2 + no // 2:
        time.sleep(0.02)
(job / "framework" / "training_job_end.ts").touch()
"""


def start_writer(job: Path, lake: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(job), str(BASE), str(lake)])


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_a_job_is_followed_to_its_end(tmp_path: Path) -> None:
    from flows.watch import follow_job

    job, lake = tmp_path / "job", tmp_path / "lake"
    with start_writer(job, lake) as writer:
        follow_job(str(job), str(lake), poll_seconds=0.1, settle_seconds=0.1)
        assert writer.wait(30) == 0
    pipeline.ingest(job, tmp_path / "plain")
    followed = rows_of(lake)
    assert followed.equals(rows_of(tmp_path / "plain"))
    assert followed.height == 18 * 20
    # It was read while it was written, and the file that was never closed came last.
    with pipeline.Store.open(lake) as store:
        looks = store.sql("SELECT count(DISTINCT committed_at) FROM sources").rows()
        (last,) = store.sql("SELECT uri FROM sources ORDER BY committed_at DESC, uri DESC LIMIT 1")
    assert looks[0][0] >= 4
    assert last.to_list()[0].endswith("_7-n1_pythontimeline.json.tmp")
    # At the end all looks together are told.
    assert artifacts("ingest-summary")[0].startswith("# job\n\n18 files with 360 events")


def follower(job: Path, lake: Path, **more: Any) -> JobFollower:
    return JobFollower(str(job), lake, poll_seconds=0, **{"settle_seconds": 0, **more})


def end(job: Path) -> None:
    (job / "framework").mkdir(parents=True, exist_ok=True)
    (job / "framework" / "training_job_end.ts").touch()


def test_looks_ingest_what_is_new(tmp_path: Path) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    job.mkdir()
    following = follower(job, lake)
    assert (following.look(), following.ended, following.latest()) == (None, False, None)
    write_framework(job, [event("a", 0, 5)], end=BASE + 10)
    report = following.look()
    assert report is not None
    assert (report.files, following.ended) == (1, False)
    assert following.latest() == (BASE + 5) * 1000
    # Both kinds are there up to the earlier of the two.
    write_system(job, BASE // 1_000_000 - 60)
    following.look()
    assert following.latest() == (BASE // 1_000_000 - 60) * 10**9 + 500_000_000
    end(job)
    report = following.look()
    assert report is not None
    assert (report.files, report.unchanged, following.ended) == (0, 2, True)


def test_files_that_are_open_wait_for_the_end(tmp_path: Path) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    write_framework(job, [event("a", 0, 5)], end=BASE + 10)
    (closed,) = job.rglob("*.json")
    closed.with_name("2_7-algo-1_pythontimeline.json.tmp").write_text(
        json.dumps([event("open", 1, 1)])[:-1]
    )
    following = follower(job, lake)
    following.look()
    assert rows_of(lake)["name"].to_list() == ["a"]
    end(job)
    following.follow()
    assert sorted(rows_of(lake)["name"]) == ["a", "open"]


def test_a_file_that_just_changed_waits(tmp_path: Path) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    write_framework(job, [event("a", 0, 5)])
    assert follower(job, lake, settle_seconds=3600).look() is None
    report = follower(job, lake).look()
    assert report is not None
    assert report.files == 1


def test_a_file_that_cannot_be_read_is_told_once_and_tried_again_at_the_end(
    tmp_path: Path,
) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    write_framework(job, [event("a", 0, 5)])
    bad = job / "framework" / "pevents" / "2020080522" / "2_7-algo-1_pythontimeline.json"
    bad.write_bytes(b"PK\x03\x04 no archive")
    following = follower(job, lake)
    reports = [following.look() for _ in range(3)]
    assert [len(report.failed) for report in reports if report is not None] == [1, 0, 0]
    with pipeline.Store.open(lake) as store:
        assert store.sql("SELECT count(*) FROM _ledger WHERE error IS NOT NULL").rows() == [(1,)]
    end(job)
    seen: list[int] = []
    following.follow(lambda report: seen.append(len(report.failed)))
    assert seen == [1]


def test_a_signal_to_stop_takes_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    write_framework(job, [event("a", 0, 5)])
    (closed,) = job.rglob("*.json")
    closed.rename(closed.with_name(closed.name + ".tmp"))
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "stop")
    (job / "stop").write_text(str(int(time.time())))
    # Within the grace time the job may still write.
    waiting = follower(job, lake)
    assert waiting.look() is None
    assert not waiting.ended
    after = follower(job, lake, grace_seconds=-5)
    after.follow()
    assert after.ended
    assert rows_of(lake)["name"].to_list() == ["a"]


def test_what_is_waited_for_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    waiting = follower(tmp_path / "job", tmp_path / "lake", tell=told.append)
    for _ in range(3):
        assert waiting.look() is None
    assert told == [f"waiting for data at {tmp_path / 'job'}"]


def test_a_storage_that_fails_for_a_while_is_waited_for(s3: S3, tmp_path: Path) -> None:
    place = f"{BUCKET}/{tmp_path.name}/job"
    write_framework(tmp_path / "job", [event("a", 0, 5)])
    s3.files.put(f"{tmp_path / 'job'}/", f"{place}/", recursive=True)
    left = {"refusals": 0}

    def fate(number: int, method: str) -> str:
        if not left["refusals"]:
            return "passed"
        left["refusals"] -= 1
        if not left["refusals"]:
            s3.files.pipe(f"{place}/framework/training_job_end.ts", b"ended")
        return "refused"

    def then_refuse(report: object) -> None:
        left["refusals"] = 3

    with unreliable(s3, fate) as proxy:
        following = JobFollower(
            f"s3://{place}", tmp_path / "lake", poll_seconds=0, settle_seconds=0,
            storage_options=proxy.s3.options,
        )  # fmt: skip
        following.follow(then_refuse)
        assert (following.ended, proxy.counts["refused"]) == (True, 3)
        # Who never got in is told so at once.
        left["refusals"] = 1
        with pytest.raises(StorageError, match="check the credentials"):
            JobFollower(
                f"s3://{place}", tmp_path / "other", storage_options=proxy.s3.options
            ).follow()
    assert rows_of(tmp_path / "lake")["name"].to_list() == ["a"]


def test_waiting_for_a_time(tmp_path: Path) -> None:
    job, lake = tmp_path / "job", tmp_path / "lake"
    write_framework(job, [event("a", 0, 5)])
    following = follower(job, lake)
    assert following.wait_until((BASE + 3) * 1000) == (BASE + 5) * 1000
    end(job)
    with pytest.raises(NoMoreProfilerData):
        following.wait_until((BASE + 6) * 1000)
