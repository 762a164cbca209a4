"""Times and steps as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pipeline.errors import UsageError
from pipeline.query.window import StepRange, nanoseconds


@pytest.mark.parametrize(
    ("value", "unit", "want"),
    [
        (1712195495519689047, "ns", 1712195495519689047),
        (1596668225500001, "us", 1596668225500001000),
        (1596668225.5, "s", 1596668225500000000),
        (1591160699.4570894, "s", 1591160699457089400),
        (Decimal("1712195495519689.047"), "us", 1712195495519689047),
        ("1712195495519689.047", "us", 1712195495519689047),
        ("1596668225500", "ms", 1596668225500000000),
        ("2020-08-05T22:57:05.5", "ns", 1596668225500000000),
        ("2020-08-06 00:57:05.5+02:00", "s", 1596668225500000000),
        ("2020-08-05 22:57:05.123456789", "s", 1596668225123456789),
        ("2020-08-06T00:57:05,1234567+02:00", "s", 1596668225123456700),
        (datetime(2020, 8, 5, 22, 57, 5, 500001), "ns", 1596668225500001000),
        (datetime(2020, 8, 5, 22, 57, 5, tzinfo=UTC), "ns", 1596668225000000000),
        (datetime(2020, 8, 6, tzinfo=timezone(timedelta(hours=2))), "ns", 1596664800000000000),
        (-5, "us", -5000),
    ],
)
def test_nanoseconds(value: Any, unit: str, want: int) -> None:
    assert nanoseconds(value, unit) == want


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (5, "hours", "no unit of time 'hours'"),
        ("yesterday", "ns", "is no time"),
        (float("nan"), "s", "finite"),
        (float("inf"), "s", "finite"),
        (1596668225500001, "s", "in another unit"),
        (None, "s", "is no time"),
    ],
)
def test_times_that_make_no_sense(value: Any, unit: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        nanoseconds(value, unit)


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        (7, (7, 8)),
        ("7", (7, 8)),
        ((2, 4), (2, 4)),
        ([2, None], (2, None)),
        (range(2, 4), (2, 4)),
        ("2:4", (2, 4)),
        ("2:", (2, None)),
        (":4", (None, 4)),
        (":", (None, None)),
        ("-1:3", (-1, 3)),
    ],
)
def test_step_ranges(steps: Any, want: tuple[int | None, int | None]) -> None:
    chosen = StepRange.of(steps)
    assert (chosen.first, chosen.until) == want


@pytest.mark.parametrize(
    "steps", ["", "a", "2:b", "2-4", "4:2", "3:3", (4, 2), (1, 2, 3), 1.5, range(0, 9, 2)]
)
def test_no_step_ranges(steps: Any) -> None:
    with pytest.raises(UsageError):
        StepRange.of(steps)
