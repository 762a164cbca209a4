"""Temporary folders of processes that were killed do not stay."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

HOLD = """
import sys
from pipeline.spill import spill_folder
with spill_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_its_folder_to_the_next(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment = environment | {"TMPDIR": str(tmp_path)}

    def start() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    killed, left = start()
    alive, used = start()
    assert left.is_dir()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    third, _ = start()
    assert not left.exists()
    assert used.is_dir()
    for process in (alive, third):
        process.communicate("")
        assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
