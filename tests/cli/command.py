"""What the tests of the command share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]
EVENT = '{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}'


def one_line(process: subprocess.CompletedProcess[str]) -> str:
    lines = process.stderr.strip().splitlines()
    assert len(lines) == 1, process.stderr
    assert "Traceback" not in process.stderr
    return lines[0]
