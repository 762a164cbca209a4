"""``tracelake record``: the command does not notice, and the lake has the machine meanwhile."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline
from tests.record.conftest import written

RECORD = [sys.executable, "-m", "pipeline", "record", "--interval", "0.02"]


def record(tmp_path: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [*RECORD, "--out", str(tmp_path / "job"), *arguments]
    return subprocess.run(command, capture_output=True, check=False, **more)  # type: ignore[call-overload]


def start(tmp_path: Path, code: str) -> subprocess.Popen[bytes]:
    """A command in Python that has said that it is ready."""
    command = [*RECORD, "--out", str(tmp_path / "job"), "--", sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_input_output_and_exit_code_are_the_commands(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read() * 2); sys.exit(42)"
    given = bytes(range(256)) * 1000
    done = record(tmp_path, "--", sys.executable, "-c", code, input=given)
    assert (done.returncode, done.stdout) == (42, given * 2)
    assert done.stderr.decode().startswith("tracelake: ")
    assert f"samples were written to {tmp_path / 'job'}\n" in done.stderr.decode()
    assert {path.suffix for path in (tmp_path / "job").rglob("*.*")} == {".json", ".ts"}
    assert {line["Type"] for line in written(tmp_path / "job")} >= {"cpu", "memory"}


def test_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    done = record(tmp_path, "echo", "--lake", "-h", "--interval=x")
    assert (done.returncode, done.stdout) == (0, b"--lake -h --interval=x\n")


def test_the_lake_has_what_was_recorded(tmp_path: Path) -> None:
    """What the command leaves in the folder belongs to the same run."""
    trace = '[{"ph":"X","name":"work","ts":1,"dur":2,"pid":1}]'
    code = f"open(r'{tmp_path}/job/trace.json', 'w').write('{trace}')"
    done = record(tmp_path, "--lake", str(tmp_path / "lake"), "--run", "mine", "--",
                  sys.executable, "-c", code)  # fmt: skip
    assert done.returncode == 0
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert store.runs()["run"].to_list() == ["mine"]
        run = store.run("mine")
        assert run.metrics().height == len(written(tmp_path / "job"))
        assert store.sql("SELECT name FROM events").item() == "work"
    assert done.stderr.decode().endswith(f" metrics are in {tmp_path / 'lake'}\n")


def test_the_commands_failure_comes_before_that_of_the_lake(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for code, want in ((7, 7), (0, 5)):
        breaks = f"import os; os.rename({str(lake)!r}, {str(lake / '..' / f'was{code}')!r});"
        breaks += f"open({str(lake)!r}, 'w').close(); raise SystemExit({code})"
        done = record(tmp_path, "--lake", str(lake), "--", sys.executable, "-c", breaks)
        assert done.returncode == want, done.stderr
        lake.unlink()


def test_a_lake_that_cannot_be_used_is_told_before_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("no folder")
    done = record(tmp_path, "--lake", str(tmp_path / "lake"), "touch", str(tmp_path / "ran"))
    assert done.returncode == 5
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_the_exit_code_is_the_commands_where_nothing_can_be_told(tmp_path: Path) -> None:
    command = [*RECORD, "--out", str(tmp_path / "job"), "--", sys.executable, "-c", "exit(4)"]
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run(command, stderr=full, check=False).returncode == 4


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("no-such-command", 127, "tracelake: no-such-command: there is no such command\n"),
        ("/", 126, "tracelake: /: Permission denied\n"),
    ],
)
def test_a_command_that_cannot_be_started(
    tmp_path: Path, command: str, code: int, says: str
) -> None:
    done = record(tmp_path, command)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (code, b"", says)
    assert list(tmp_path.iterdir()) == []


def test_wrong_options(tmp_path: Path) -> None:
    assert record(tmp_path).returncode == 2
    done = record(tmp_path, "--interval", "0", "true")
    assert done.returncode == 2
    assert b"give a number above 0" in done.stderr
    done = record(tmp_path, "--intervall", "1", "true")
    assert done.returncode == 2
    assert b"no such option" in done.stderr.lower()
    assert list(tmp_path.iterdir()) == []
    done = record(tmp_path, "--out", "", "true")
    assert (done.returncode, done.stderr.decode()) == (
        2, "tracelake: --out is empty: give a folder, or leave it out\n",
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "job").write_text("no folder")
    assert record(tmp_path, "true").returncode == 2


def test_a_command_is_ended_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "system").write_text("no folder")
    # Its output would stay open for as long as it runs.
    done = record(tmp_path, "sleep", "250", timeout=60)
    assert done.returncode == 6
    assert done.stderr.decode().startswith(f"tracelake: cannot write to {tmp_path / 'job'}: ")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGALRM", "SIGUSR1"])
def test_a_signal_goes_on_to_the_command(tmp_path: Path, name: str) -> None:
    code = (
        f"import signal, sys; signal.signal(signal.{name}, lambda *_: sys.exit(9));"
        "print('ready', flush=True); signal.pause()"
    )
    with start(tmp_path, code) as process:
        process.send_signal(getattr(signal, name))
        assert process.wait() == 9
    assert {path.suffix for path in (tmp_path / "job").rglob("*.*")} == {".json", ".ts"}


def test_the_signal_that_ended_the_command_is_told(tmp_path: Path) -> None:
    code = "import signal; print('ready', flush=True); signal.pause()"
    with start(tmp_path, code) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM


def test_the_interrupt_of_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    code = (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT});"
        "print('ready', flush=True); first = signal.sigwait({signal.SIGINT});"
        "second = signal.sigtimedwait({signal.SIGINT}, 0.5);"
        "print('once' if second is None else 'twice', flush=True)"
    )
    command = [*RECORD, "--out", str(tmp_path / "job"), "--", sys.executable, "-c", code]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    said = b""
    with open(terminal, "r+b", buffering=0) as file:  # noqa: PTH123
        while b"ready" not in said:
            said += file.read(1000)
        file.write(b"\x03")
        while b"once" not in said and b"twice" not in said:
            said += file.read(1000)
        _, status = os.waitpid(child, 0)
    assert b"once" in said
    assert os.waitstatus_to_exitcode(status) == 0


def test_by_default_a_folder_named_by_the_command(tmp_path: Path) -> None:
    done = subprocess.run([*RECORD, "/bin/echo", "hi"], cwd=tmp_path, capture_output=True,
                          check=True)  # fmt: skip
    (folder,) = (tmp_path / "recorded").iterdir()
    assert folder.name.startswith("echo-2")
    assert done.stdout == b"hi\n"
