"""Runs a command as if nobody stood between it and who called it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial

from pipeline.errors import UsageError

__all__ = ["CommandError", "run_command"]

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2")
_BY_TERMINAL = ("SIGINT", "SIGQUIT", "SIGHUP")
NOT_EXECUTABLE, NOT_FOUND, SIGNALLED = 126, 127, 128


def run_command(command: Sequence[str], meanwhile: Callable[[], object]) -> int:
    """Run a command with this process's input and output, ``meanwhile`` once it has started, and
    give its exit code; 128 and the number of the signal that ended it.

    Signals that this process gets go on to the command, but for those that a terminal has sent to
    both. Raises ``CommandError`` where it cannot be started, and what ``meanwhile`` raises: then
    the command is killed.
    """
    signals = {getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)}
    if not hasattr(signal, "sigwait"):
        process = _start(command, lambda: None, meanwhile)
        return _exit_code(process.wait())
    # Blocked before it starts, so that none is lost, and let through again in the command.
    watched = {*signals, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        unblock = partial(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        process = _start(command, unblock, meanwhile)
        while process.poll() is None:
            number, is_of_terminal = _next(watched)
            if number != signal.SIGCHLD and not is_of_terminal:
                process.send_signal(number)
        return _exit_code(process.returncode)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class CommandError(UsageError):
    """A command that cannot be started; the exit code is the one that a shell gives."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def _start(
    command: Sequence[str], in_child: Callable[[], object], meanwhile: Callable[[], object]
) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(command, preexec_fn=in_child if os.name == "posix" else None)
    except FileNotFoundError as error:
        raise CommandError(f"{command[0]}: there is no such command", NOT_FOUND) from error
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error
    try:
        meanwhile()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def _next(watched: set[signal.Signals]) -> tuple[int, bool]:
    """Wait for a signal; its number, and whether the command has got it too, from the terminal."""
    by_terminal = {getattr(signal, name) for name in _BY_TERMINAL}
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(watched)
        # What a process sends has a code of 0 or below.
        return info.si_signo, info.si_signo in by_terminal and info.si_code > 0
    number = signal.sigwait(watched)
    return number, number in by_terminal and sys.stdin.isatty()


def _exit_code(code: int) -> int:
    return SIGNALLED - code if code < 0 else code
