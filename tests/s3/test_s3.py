"""Traces and lakes in buckets, on a real S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import pipeline
from pipeline.compat.smdebug import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
    S3SystemMetricsReader,
)
from pipeline.errors import SourceError, StorageError
from pipeline.follow import JobFollower
from pipeline.sources.listing import find_remote, settled_hours
from tests.compat.jobs import BASE, event, write_framework, write_system
from tests.s3.server import BUCKET, KEY, OPEN, S3, SECRET, unreliable

ROWS = "SELECT node, seq, kind, ts_ns, dur_ns, name, process_name, args FROM events ORDER BY ALL"


@pytest.fixture
def job(s3: S3, tmp_path: Path) -> str:
    """A small job, on disk and in the bucket; gives its place in the bucket."""
    local = tmp_path / "job"
    for minute in range(3):
        write_framework(
            local, [event(f"op{n}", minute * 60_000_000 + n, 5) for n in range(50)],
            end=BASE + minute * 60_000_000,
        )  # fmt: skip
        write_system(local, BASE // 1_000_000 + 60 * minute)
    place = f"{BUCKET}/{tmp_path.name}/job"
    s3.files.put(f"{local}/", f"{place}/", recursive=True)
    return f"s3://{place}"


def run_tracelake(s3: S3, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **s3.environment, **more}
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_from_a_bucket_to_a_bucket(s3: S3, job: str, tmp_path: Path) -> None:
    lake = job.replace("/job", "/lake")
    report = pipeline.ingest(job, lake, "job", storage_options=s3.options)
    assert (report.files, report.events, report.metrics, report.failed) == (6, 150, 3, ())
    pipeline.ingest(tmp_path / "job", tmp_path / "lake", "job")
    with (
        pipeline.Store.open(lake, s3.options) as remote,
        pipeline.Store.open(tmp_path / "lake") as local,
    ):
        assert remote.sql(ROWS).equals(local.sql(ROWS))
        assert remote.sql("SELECT DISTINCT uri[:5] FROM sources").rows() == [("s3://",)]
        again = pipeline.ingest(job, lake, "job", storage_options=s3.options)
        assert (again.files, again.unchanged) == (0, 6)
        # Another process adds a file: an open store sees it at once.
        write_framework(tmp_path / "more", [event("late", 0, 1)], end=BASE + 7)
        s3.files.put(f"{tmp_path / 'more'}/", f"{job}/", recursive=True)
        done = run_tracelake(s3, "ingest", job, "--lake", lake, "--run", "job")
        assert done.returncode == 0, done.stderr
        assert remote.sql("SELECT name FROM events WHERE name = 'late'").rows() == [("late",)]
        assert remote.run("job").steps().is_empty()


def test_the_command_line_reaches_a_bucket(s3: S3, job: str) -> None:
    lake = job.replace("/job", "/lake")
    done = run_tracelake(s3, "ingest", job, "--lake", lake, "--run", "job")
    assert done.returncode == 0, done.stderr
    query = ["sql", "SELECT count(*) AS n FROM events", "--lake", lake, "--format", "csv"]
    assert run_tracelake(s3, *query).stdout == "n\n150\n"
    given = [
        "--storage-option", f"endpoint={s3.endpoint}", "--storage-option", "region=us-east-1",
        "--storage-option", 'client_kwargs={"use_ssl": false}',
    ]  # fmt: skip
    assert run_tracelake(s3, *query, *given, AWS_ENDPOINT_URL="").stdout == "n\n150\n"


def test_a_profile_lets_one_in(s3: S3, job: str, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        f"[team]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    lake = job.replace("/job", "/lake")
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    where = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    ingest = ["ingest", job, "--lake", lake, "--run", "job"]
    assert run_tracelake(s3, *ingest, **nobody, **where).returncode == 6
    assert run_tracelake(s3, *ingest, **nobody, **where, AWS_PROFILE="team").returncode == 0
    given = ["--storage-option", "profile=team"]
    assert run_tracelake(s3, "runs", "--lake", lake, *given, **nobody, **where).returncode == 0


def test_an_open_bucket_needs_no_key(s3: S3, job: str, tmp_path: Path) -> None:
    s3.files.put(f"{tmp_path / 'job'}/", f"{OPEN}/{tmp_path.name}/job/", recursive=True)
    anyone = {"anon": True, "endpoint": s3.endpoint}
    lake = tmp_path / "lake"
    source = f"s3://{OPEN}/{tmp_path.name}/job"
    assert pipeline.ingest(source, lake, "job", storage_options=anyone).events == 150
    with pytest.raises(StorageError, match="check the credentials"):
        pipeline.ingest(job, lake, "other", storage_options=anyone)


@pytest.mark.parametrize(
    ("changed", "lake", "code", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "lake", 6, "check the credentials"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "lake", 6, "check the credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "lake", 6, "check the address of the server"),
        ({}, "nowhere", 6, "bucket"),
    ],
    ids=["secret", "key", "endpoint", "bucket"],
)
def test_what_the_store_refuses_is_one_line(
    s3: S3, job: str, changed: dict[str, str], lake: str, code: int, says: str
) -> None:
    place = job.replace("/job", "/lake") if lake == "lake" else "s3://no-such-bucket/lake"
    done = run_tracelake(s3, "ingest", job, "--lake", place, **changed)
    assert (done.returncode, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tracelake: cannot")
    assert says in line


def test_a_prefix_without_anything(s3: S3, job: str) -> None:
    lake = job.replace("/job", "/lake")
    with pytest.raises(SourceError, match="nothing at"):
        pipeline.ingest(f"{job}/nothing", lake, storage_options=s3.options)
    for place in ("s3://no-such-bucket/job", "s3://no-such-bucket/what?/*"):
        with pytest.raises(StorageError, match="there is no such bucket"):
            pipeline.ingest(place, lake, storage_options=s3.options)
    following = JobFollower("s3://no-such-bucket/job", lake, storage_options=s3.options)
    with pytest.raises(StorageError, match="there is no such bucket"):
        following.follow()


@pytest.mark.parametrize(
    ("arguments", "changed", "says"),
    [
        (["{job}", "--storage-option", "nonsense=1"], {}, "check the storage options"),
        (["{job}"], {"AWS_ENDPOINT_URL": "garbage"}, "AWS_ENDPOINT_URL"),
        (["s3://"], {}, "names no bucket"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    s3: S3, job: str, tmp_path: Path, arguments: list[str], changed: dict[str, str], says: str
) -> None:
    given = [argument.format(job=job) for argument in arguments]
    done = run_tracelake(s3, "ingest", *given, "--lake", str(tmp_path / "lake"), **changed)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tracelake: ")
    assert says in line


def test_missing_packages_name_the_extra(tmp_path: Path) -> None:
    with pytest.raises(pipeline.errors.UsageError, match=r"pip install 'tracelake\[gcs\]'"):
        pipeline.ingest("gs://bucket/job", tmp_path / "lake")


def test_a_third_of_the_requests_goes_wrong(s3: S3, job: str, tmp_path: Path) -> None:
    lake = job.replace("/job", "/lake")
    with unreliable(s3) as proxy:
        report = pipeline.ingest(job, lake, "job", storage_options=proxy.s3.options)
        assert (report.events, report.failed) == (150, ())
        with pipeline.Store.open(lake, proxy.s3.options) as store:
            got = store.sql(ROWS)
    assert min(proxy.counts[fate] for fate in ("dropped", "failed", "late")) >= 3
    pipeline.ingest(tmp_path / "job", tmp_path / "lake", "job")
    with pipeline.Store.open(tmp_path / "lake") as local:
        assert got.equals(local.sql(ROWS))


@pytest.fixture
def as_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    yield


@pytest.mark.usefixtures("as_environment")
def test_readers_of_smdebug_take_a_bucket(job: str, tmp_path: Path) -> None:
    got = S3AlgorithmMetricsReader(job).get_events(0, 2e15)
    want = LocalAlgorithmMetricsReader(str(tmp_path / "job")).get_events(0, 2e15)
    assert [vars(found) for found in got] == [vars(found) for found in want]
    assert len(got) == 150
    assert len(S3SystemMetricsReader(job).get_events(0, 2e15)) == 3


def test_settled_hours_are_not_listed_again(s3: S3, tmp_path: Path) -> None:
    place = f"{BUCKET}/{tmp_path.name}/job"
    hours = [f"202008{day:02d}{hour:02d}" for day in (5, 6) for hour in range(24)]
    paths = [f"{place}/framework/pevents/{hour}/{n}_a.json" for hour in hours for n in range(10)]
    s3.files.pipe(dict.fromkeys([*paths, f"{place}/framework/end"], b"[]"))
    known = [path for path in paths if "/2020080512/" not in path]
    failed = [f"{place}/framework/pevents/2020080515/3_a.json"]
    assert len(settled_hours(known, failed, 1)) == 44
    # A clock that is ahead makes nothing old; an hour that is ahead is never settled by others.
    ahead = [f"{place}/framework/pevents/2099010100/1_a.json", *paths[-30:]]
    assert sorted(path[-10:] for path in settled_hours(ahead, [], 1)) == ["2020080621"]
    noon = datetime(2020, 8, 6, 22, 30, tzinfo=UTC)
    assert len(settled_hours(known, [], 1, noon)) == 44
    settled = settled_hours(known, [], 1)
    assert f"{place}/framework/pevents/2020080512" not in settled
    assert len(settled) == 45
    # A hour that the lake has nothing of, the last two, and what lies beside the hours.
    late = f"{place}/framework/pevents/2020080623/late_a.json"
    s3.files.pipe(late, b"[]")
    listed = find_remote(s3.files, place, settled)
    want = [path for path in paths if path.split("/")[-2] in hours[-2:] or path not in known]
    assert sorted(listed) == sorted([*want, late, f"{place}/framework/end"])
    assert sorted(find_remote(s3.files, place)) == sorted([*paths, late, f"{place}/framework/end"])


@pytest.mark.slow
def test_of_twenty_thousand_objects_few_are_listed_again(s3: S3, tmp_path: Path) -> None:
    """A hundred in each of two hundred hours; what the server sends for a listing is counted."""
    place = f"{BUCKET}/{tmp_path.name}/job"
    hours = [f"202008{day:02d}{hour:02d}" for day in range(1, 11) for hour in range(20)]
    paths = [
        f"{place}/framework/pevents/{hour}/{n}_7-algo-1_pythontimeline.json"
        for hour in hours for n in range(100)
    ]  # fmt: skip
    for first in range(0, len(paths), 2000):
        s3.files.pipe(dict.fromkeys(paths[first : first + 2000], b"[]"), batch_size=256)
    sent = []
    with unreliable(s3, lambda number, method: "passed") as proxy:
        for settled in (frozenset(), settled_hours(paths, [], 1)):
            before = proxy.counts.copy()
            found = find_remote(proxy.s3.files, place, settled)
            sent.append(proxy.counts - before)
            assert len(found) == (200 if settled else 20_000)
    assert sent[1]["bytes"] < sent[0]["bytes"] / 10
    assert sent[1]["passed"] < sent[0]["passed"], sent


def test_an_ingest_lists_only_hours_that_may_change(s3: S3, tmp_path: Path) -> None:
    place = f"{BUCKET}/{tmp_path.name}/job"
    trace = json.dumps([event("a", BASE, 1)]).encode()
    of = {hour: f"{place}/framework/pevents/{hour}/1_a_pythontimeline.json" for hour in (
        "2020080520", "2020080521", "2020080522", "2020080523",
    )}  # fmt: skip
    s3.files.pipe(dict.fromkeys(of.values(), trace))
    lake = str(tmp_path / "lake")
    ask: dict[str, Any] = {"storage_options": s3.options, "late_hours": 1}
    assert pipeline.ingest(f"s3://{place}", lake, **ask).files == 4
    for hour in ("2020080521", "2020080522"):
        s3.files.pipe(of[hour].replace("1_a", "2_a"), trace)
    late = pipeline.ingest(f"s3://{place}", lake, **ask)
    assert (late.files, late.unchanged) == (1, 2)
    assert pipeline.ingest(f"s3://{place}", lake, storage_options=s3.options).files == 1


def test_the_events_of_a_step_cost_a_twentieth_of_the_bytes(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three million events, 40 to a step; what the file system fetches is counted."""
    import s3fs

    source = tmp_path / "job.json"
    duckdb.execute(
        """
        COPY (
            SELECT 'X' AS ph, 1 AS pid, i % 4 AS tid, 1600000000000000 + i * 50 AS ts,
                hash(i) % 2000 AS dur,
                CASE WHEN i % 40 = 0 THEN 'Step:ModeKeys.TRAIN' ELSE 'op' || i % 40 END AS name,
                CASE WHEN i % 40 = 0 THEN {'step_num': i // 40} END AS args
            FROM range(3000000) AS t(i)
        ) TO $path (FORMAT json)
        """,
        {"path": str(source)},
    )
    lake = f"s3://{BUCKET}/{tmp_path.name}/lake"
    pipeline.ingest(source, lake, "job", storage_options=s3.options)
    total = sum(info["size"] for info in s3.files.find(f"{lake}/events", detail=True).values())
    fetched = []
    fetch = s3fs.core._fetch_range

    def counted(fs: Any, bucket: str, key: str, version: Any, start: int, end: int, *more: Any,
                **named: Any) -> bytes:  # fmt: skip
        fetched.append(end - start)
        return fetch(fs, bucket, key, version, start, end, *more, **named)

    monkeypatch.setattr(s3fs.core, "_fetch_range", counted)
    with pipeline.Store.open(lake, s3.options) as store:
        events = store.run("job").events(steps=30_000)
    assert 40 <= events.height <= 80
    assert 0 < sum(fetched) < total / 20
