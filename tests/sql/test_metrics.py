"""System metrics in steps and phases, and how busy resources were."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.small_lake import SLOW, SPANS, SmallLake

SAMPLES = st.dictionaries(st.integers(0, 40), st.none() | st.integers(0, 100), max_size=12)


def weighted(samples: dict[int, int | None], start: int, end: int) -> Fraction | None:
    """Mean over the instants in which a sample holds, one nanosecond after the other."""
    times = sorted(samples)
    held = []
    for instant in range(start, end):
        earlier = [time for time in times if time <= instant]
        if earlier and instant < times[-1] and samples[earlier[-1]] is not None:
            held.append(samples[earlier[-1]])
    return Fraction(sum(value or 0 for value in held), len(held)) if held else None


@SLOW
@given(samples=SAMPLES, span=SPANS)
def test_step_metrics_hold_each_sample_until_the_next(
    small: SmallLake, samples: dict[int, int | None], span: tuple[int, int]
) -> None:
    start, end = span
    small.fill("metrics", [{"ts_ns": t, "value": value} for t, value in samples.items()])
    small.fill("events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": start, "end_ns": end}])
    query = "SELECT samples, mean, as_of, time_weighted FROM step_metrics('job')"
    if not samples:
        assert small.ask(query) == []
        return
    ((count, mean, as_of, time_weighted),) = small.ask(query)
    inside = [v for t, v in samples.items() if start <= t <= end and v is not None]
    before = [t for t in samples if t <= start]
    want = weighted(samples, start, end)
    assert count == len(inside)
    assert mean == (sum(inside) / len(inside) if inside else None)
    assert as_of == (samples[max(before)] if before else None)
    assert (time_weighted is None) == (want is None)
    assert want is None or abs(time_weighted - want) < 1e-9


@pytest.mark.parametrize("spike", [1e18, -1e18, 1e15])
def test_what_came_before_does_not_spoil_what_is_small(small: SmallLake, spike: float) -> None:
    """As where a counter wrapped once, or a network was busy the day before."""
    hour = 3_600_000_000_000
    small.fill(
        "events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": hour + 10, "end_ns": hour + 20}]
    )
    small.fill(
        "metrics",
        [
            {"ts_ns": 0, "value": 0.7}, {"ts_ns": 5, "value": spike},
            {"ts_ns": hour, "value": 0.1}, {"ts_ns": hour + 15, "value": 0.3},
            {"ts_ns": 2 * hour, "value": 5.5},
        ],
    )  # fmt: skip
    ((mean, time_weighted),) = small.ask("SELECT mean, time_weighted FROM step_metrics('job')")
    assert (mean, round(time_weighted, 4)) == (pytest.approx(0.3, abs=1e-4), 0.2)


@pytest.mark.parametrize("scale", [1e-9, 1e-18, 1e-200, 5e-324, 1e9, 1e200])
def test_values_of_any_size_keep_their_digits(small: SmallLake, scale: float) -> None:
    small.fill("events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": 0, "end_ns": 10**9}])
    values = [1.8456017266 * scale, -3 * scale, 0.0]
    small.fill("metrics", [{"ts_ns": 10**8 * at, "value": v} for at, v in enumerate(values)])
    query = "SELECT mean, time_weighted FROM step_metrics('job')"
    ((mean, weighted),) = small.ask(query)
    assert mean == pytest.approx((values[0] + values[1]) / 3, rel=1e-12, abs=5e-324)
    assert weighted == pytest.approx((values[0] + values[1]) / 2, rel=1e-12, abs=5e-324)


def test_counters_of_ranks_are_each_their_own(small: SmallLake) -> None:
    counter = {"resource": "counter", "device": "m", "metric": "b", "unit": None}
    rows = [
        {**counter, "rank": rank, "ts_ns": at, "value": 100 * rank + at}
        for rank in range(3)
        for at in (0, 50)
    ]
    small.fill("events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": 0, "end_ns": 100, "rank": 1}])
    small.fill("_live_sources", [{"first_ns": 0, "last_ns": 100}])
    for ordered in (rows, rows[::-1]):
        small.fill("metrics", ordered)
        query = "SELECT rank, samples, mean, as_of, time_weighted FROM phase_metrics('job')"
        assert small.ask(query) == [
            (rank, 2, 100 * rank + 25, 100 * rank, 100 * rank) for rank in range(3)
        ]
        query = "SELECT samples, mean_as_of FROM operator_metrics('job', 'b')"
        assert small.ask(query) == [(2, 100.0)]


def test_each_series_is_on_its_own(small: SmallLake) -> None:
    small.fill("events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": 10, "end_ns": 30, "rank": 0}])
    small.fill(
        "metrics",
        [
            {"ts_ns": 0, "value": 10}, {"ts_ns": 20, "value": 30}, {"ts_ns": 40, "value": 50},
            {"ts_ns": 15, "value": 7, "device": "gpu1"},
            {"ts_ns": 15, "value": 8, "device": "gpu1", "node": "node1"},
            {"ts_ns": 15, "value": 9, "device": "queue", "rank": 1},
            {"ts_ns": 15, "value": 9, "device": "queue", "rank": 0},
        ],
    )  # fmt: skip
    query = "SELECT device, samples, mean, as_of, time_weighted FROM step_metrics('job')"
    assert small.ask(query) == [
        ("gpu0", 1, 30.0, 10.0, 20.0),
        ("gpu1", 1, 7.0, None, None),
        ("queue", 1, 9.0, None, None),
    ]


def test_phases_and_operators(small: SmallLake) -> None:
    small.fill(
        "events",
        [
            {"name": "Step:TRAIN", "step": 1, "ts_ns": 10, "end_ns": 20},
            {"name": "relu", "ts_ns": 10, "end_ns": 12},
            {"name": "relu", "ts_ns": 24, "end_ns": 30},
        ],
    )
    small.fill("_live_sources", [{"first_ns": 0, "last_ns": 40}])
    small.fill(
        "metrics",
        [
            {"ts_ns": 0, "value": 10}, {"ts_ns": 20, "value": 90}, {"ts_ns": 40, "value": 0},
            {"ts_ns": 0, "value": 1, "metric": "Other"},
        ],
    )  # fmt: skip
    query = "SELECT phase, samples, mean, time_weighted FROM phase_metrics('job')"
    assert small.ask(f"{query} WHERE metric = 'GPUUtilization'") == [
        ("After TRAIN", 1, 0.0, 90.0),
        ("Before TRAIN", 1, 10.0, 10.0),
        ("TRAIN", 1, 90.0, 10.0),
    ]
    query = "SELECT name, samples, mean_as_of, time_weighted"
    assert small.ask(f"{query} FROM operator_metrics('job', 'GPUUtilization')") == [
        ("Step:TRAIN", 1, 10.0, 10.0),
        ("relu", 0, 50.0, (2 * 10 + 6 * 90) / 8),
    ]


def test_utilization(small: SmallLake) -> None:
    small.fill("events", [{"name": "Step:TRAIN", "step": 1, "ts_ns": 10, "end_ns": 20}])
    small.fill("_live_sources", [{"first_ns": 0, "last_ns": 40}])
    small.fill(
        "metrics",
        [
            {"ts_ns": 5, "value": 10}, {"ts_ns": 10, "value": 50}, {"ts_ns": 20, "value": 90},
            {"ts_ns": 30, "value": None},
            {"ts_ns": 30, "value": 4e9, "metric": "used", "unit": "bytes", "resource": "memory"},
        ],
    )  # fmt: skip
    columns = "SELECT resource, metric, phase, samples, mean, min, max, p50"
    assert small.ask(f"{columns} FROM utilization('job')") == [
        ("gpu", "GPUUtilization", None, 3, 50.0, 10.0, 90.0, 50.0)
    ]
    assert small.ask(f"{columns} FROM utilization('job', by_phase := TRUE)") == [
        ("gpu", "GPUUtilization", "Before TRAIN", 1, 10.0, 10.0, 10.0, 10.0),
        ("gpu", "GPUUtilization", "TRAIN", 2, 70.0, 50.0, 90.0, 70.0),
    ]


def test_utilization_ranges_share_out_the_time(small: SmallLake) -> None:
    small.fill(
        "metrics",
        [
            {"ts_ns": 0, "value": 0}, {"ts_ns": 10, "value": 10}, {"ts_ns": 30, "value": 90},
            {"ts_ns": 60, "value": 100}, {"ts_ns": 90, "value": 120}, {"ts_ns": 95, "value": -1},
            {"ts_ns": 99, "value": None}, {"ts_ns": 100, "value": 50},
        ],
    )  # fmt: skip
    columns = "SELECT low, high, samples, dur_ns, round(time_share, 6) FROM"
    assert small.ask(f"{columns} utilization_ranges('job')") == [
        (None, 0, 1, 4, 0.040404),
        (0, 10, 1, 10, 0.10101),
        (10, 90, 2, 20, 0.20202),
        (90, 100, 2, 60, 0.606061),
        (100, None, 1, 5, 0.050505),
    ]
    assert small.ask(f"{columns} utilization_ranges('job', edges := [0, 100])") == [
        (None, 0, 1, 4, 0.040404),
        (0, 100, 5, 90, 0.909091),
        (100, None, 1, 5, 0.050505),
    ]
    small.fill("metrics", [{"ts_ns": 7, "value": 50}])
    assert small.ask(f"{columns} utilization_ranges('job')") == [(10, 90, 1, 0, None)]


def test_no_data_gives_no_rows(small: SmallLake) -> None:
    for table in ("events", "metrics", "_live_sources"):
        small.fill(table, [])
    questions: list[Any] = [
        "step_metrics('job')", "phase_metrics('job')", "operator_metrics('job', 'x')",
        "utilization('job', by_phase := TRUE)", "utilization_ranges('job')", "job_phases('job')",
        "phase_intervals('job')", "step_statistics('job', 'process')", "step_outliers('job')",
        "step_events('job')", "dataloader_statistics('job')", "dataloader_batch_times('job')",
        "events_between('job', 0, 9)", "metrics_between('job', 0, 9)",
        "step_overlap('job', 0, 9)",
    ]  # fmt: skip
    assert [small.ask(f"FROM {question}") for question in questions] == [[]] * len(questions)
