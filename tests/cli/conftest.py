"""The command as a user runs it, for the tests of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import EVENT, Run


@pytest.fixture
def tracelake(environment: dict[str, str], tmp_path: Path) -> Run:
    def run(*arguments: object, **keywords: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pipeline", *map(str, arguments)]
        keywords = {"env": environment, "cwd": tmp_path, **keywords}
        return subprocess.run(command, capture_output=True, text=True, check=False, **keywords)

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "job" / "trace.json"
    path.parent.mkdir()
    path.write_text(f"[{EVENT}, oops, {EVENT}]")
    return path
