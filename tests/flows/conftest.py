"""A Prefect server for all tests of flows, with its own home."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before prefect is imported: results and settings of the user stay what they are.
_HOME = tempfile.TemporaryDirectory(prefix="tracelake-prefect-")
os.environ.update(
    PREFECT_HOME=_HOME.name,
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    PREFECT_LOGGING_TO_CONSOLE_ENABLED="false",
    PREFECT_LOGGING_TO_API_ENABLED="false",
    # What asks for no server must not start one.
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="false",
    # The least time between two looks for runs that are due.
    PREFECT_RUNNER_POLL_FREQUENCY="1",
    DO_NOT_TRACK="1",
)


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server, with its scheduler; flows of this process use it by themselves."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("prefect") / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1"]
    with log.open("wb") as out:
        server = subprocess.Popen([*command, "--port", str(port)], stdout=out, stderr=out)
        try:
            url = f"http://127.0.0.1:{port}/api"
            _wait_until_healthy(server, url, log)
            with temporary_settings({PREFECT_API_URL: url}):
                yield url
        finally:
            server.terminate()
            server.wait(30)


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(400):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"the server does not answer: {log.read_text()}")


@pytest.fixture(scope="session")
def flow_environment(prefect_api: str, environment: dict[str, str]) -> dict[str, str]:
    """Environment for processes that talk to the server."""
    return {**environment, "PREFECT_API_URL": prefect_api}
