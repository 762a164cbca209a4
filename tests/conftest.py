"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipeline
from tests.s3.server import S3, s3_server

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real traces and what they must become; a clone on its own does not have them."""
    folder = ROOT.parent / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("needs ../shared with the real traces")
    return folder


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Environment for processes that run the code of this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Where a test may make its lake."""
    return tmp_path / "lake"


@pytest.fixture(scope="session")
def traces_lake(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with all of the real traces, read-only by agreement."""
    lake = tmp_path_factory.mktemp("traces") / "lake"
    pipeline.ingest(shared / "traces", lake)
    return lake


@pytest.fixture(scope="session")
def traces(traces_lake: Path) -> Iterator[pipeline.Store]:
    with pipeline.Store.open(traces_lake) as store:
        yield store


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A real S3 server with one bucket, for all tests."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
