"""Fixture of the tests of single macros."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.small_lake import SmallLake


@pytest.fixture(scope="module")
def small() -> Iterator[SmallLake]:
    opened = SmallLake()
    yield opened
    opened.close()
