"""A job that is followed while it writes: what is waited for, and what ends the waiting."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.compat.smdebug import NoMoreProfilerData, ProfilerTrial
from pipeline.errors import SourceError
from pipeline.job_end import STOP_FILE_VARIABLE, has_ended
from tests.compat.jobs import BASE, event, write_framework, write_system


class Trial(ProfilerTrial):
    """Looks again at once; what it waits for comes when it says that it waits."""

    poll_seconds = 0.0


@contextmanager
def whenever_it_waits(*acts: Callable[[], object]) -> Iterator[list[str]]:
    """Do the acts one by one, each when the trial says that it waits."""
    said: list[str] = []
    waiting = iter(acts)

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            next(waiting)()

    logger, handler = logging.getLogger("pipeline.compat.smdebug.trial"), Handler()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert next(waiting, None) is None


def end(job: Path, folder: str = "framework") -> None:
    (job / folder).mkdir(parents=True, exist_ok=True)
    (job / folder / "training_job_end.ts").touch()


def test_framework_files_alone_are_waited_for(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    out = tmp_path / "out"

    def first() -> None:
        write_framework(job, [event("a", 0, 5)], end=BASE + 10)

    with whenever_it_waits(first) as said:
        trial = Trial("profiler", str(job), str(out))
    assert said == ["Waiting for profiler data."]
    assert (trial.first_timestamp, trial.get_latest_timestamp()) == (BASE + 10, BASE + 10)
    assert (out / ".sagemaker-ignore").is_dir()

    def more() -> None:
        write_framework(job, [event("b", 20, 5)], end=BASE + 30)

    with whenever_it_waits(more):
        trial.wait_for_data(BASE + 20, BASE)
    names = [found.event_name for found in trial.get_framework_metrics(BASE, BASE + 30)]
    assert names == ["a", "b"]
    with whenever_it_waits(lambda: end(job)):
        trial.wait_for_data(BASE + 40, BASE + 20)
    message = f"Looking for timestamp {BASE + 40} and reached end of training."
    with pytest.raises(NoMoreProfilerData, match=message) as caught:
        trial.wait_for_data(BASE + 40, BASE + 30)
    assert caught.value.timestamp == BASE + 40


def test_an_ended_job_without_data_is_not_waited_for(tmp_path: Path) -> None:
    end(tmp_path, "system")
    trial = Trial("profiler", str(tmp_path), str(tmp_path / "out"))
    assert (trial.first_timestamp, trial.get_latest_timestamp()) == (0, 0)
    with pytest.raises(NoMoreProfilerData):
        trial.wait_for_data(BASE, BASE)


def test_data_is_there_when_both_kinds_are(tmp_path: Path) -> None:
    second = BASE // 1_000_000
    write_system(tmp_path, second)
    write_framework(tmp_path, [event("a", 0, 5)], end=BASE + 10_000_000)
    trial = Trial("profiler", str(tmp_path), str(tmp_path / "out"))
    assert (trial.first_timestamp, trial.get_latest_timestamp()) == (BASE, BASE)
    with whenever_it_waits(lambda: write_system(tmp_path, second + 60)):
        trial.wait_for_data(BASE + 5_000_000, BASE)
    assert trial.get_latest_timestamp() == BASE + 10_000_000
    (sample,) = trial.get_system_metrics(BASE, BASE + 10_000_000)
    assert sample.timestamp == second + 0.5


def test_a_signal_to_stop_ends_a_job_after_its_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal = tmp_path / "stop"
    job = str(tmp_path)
    assert not has_ended(job)
    monkeypatch.setenv(STOP_FILE_VARIABLE, "stop")
    assert not has_ended(job)
    signal.write_text(str(int(time.time())))
    assert not has_ended(job)
    assert has_ended(job, grace_seconds=-5)
    signal.write_text(str(int(time.time()) - 61))
    assert has_ended(job)
    monkeypatch.setenv(STOP_FILE_VARIABLE, str(signal))
    assert has_ended(str(tmp_path / "elsewhere"))
    for text in ("now", "nan", "inf", str((int(time.time()) - 61) * 1000)):
        signal.write_text(text)
        assert has_ended(job)
    signal.write_text(str((int(time.time()) - 50) * 1000))
    assert not has_ended(job)
    # Seen while it is written: the time is that of the file.
    signal.write_text("")
    assert not has_ended(job)
    os.utime(signal, (time.time() - 61, time.time() - 61))
    assert has_ended(job)
    with pytest.raises(SourceError, match="cannot open bogus://"):
        has_ended("bogus://x/y")
