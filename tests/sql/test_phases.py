"""The phases of a job, and the training phases of each node, of which each instant is in one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.sql.small_lake import SLOW, SmallLake, step


def test_job_phases(small: SmallLake) -> None:
    small.fill(
        "events",
        [step(0, 100, 200), step(1, 150, 260), step(2, 300, 400, node="node1"), step(3, 450, 500)],
    )
    small.fill(
        "_live_sources", [{"first_ns": 20, "last_ns": 500}, {"first_ns": 0, "last_ns": 1000}]
    )
    assert small.ask("FROM job_phases('job')") == [
        ("initialization", 0, 100, 100, 0.1),
        ("training_loop", 100, 500, 400, 0.4),
        ("between", None, None, 90, 0.09),
        ("finalization", 500, 1000, 500, 0.5),
    ]
    assert small.ask("FROM job_phases('other')") == []


def test_phase_intervals(small: SmallLake) -> None:
    small.fill(
        "events",
        [
            step(0, 100, 190), step(1, 200, 290), step(0, 300, 390, "EVAL"), step(2, 391, 500),
            step(0, 50, 60, node="node1"),
        ],
    )  # fmt: skip
    small.fill("_live_sources", [{"first_ns": 50, "last_ns": 500}])
    assert small.ask("FROM phase_intervals('job')") == [
        ("node0", "Before TRAIN", 50, 99),
        ("node0", "TRAIN", 100, 290),
        ("node0", "Between EVAL and TRAIN", 291, 299),
        ("node0", "EVAL", 300, 390),
        ("node0", "TRAIN", 391, 500),
        ("node1", "TRAIN", 50, 60),
        ("node1", "After TRAIN", 61, 500),
    ]


def test_phases_of_steps_that_run_at_once_do_not_overlap(small: SmallLake) -> None:
    """One worker evaluates while another trains."""
    small.fill(
        "events",
        [
            step(1, 100, 1000),
            step(2, 1100, 1200),
            step(1, 200, 300, "EVAL"),
            step(2, 1150, 1300, "EVAL"),
        ],
    )
    small.fill("_live_sources", [{"first_ns": 100, "last_ns": 1300}])
    assert small.ask("SELECT phase, start_ns, end_ns FROM phase_intervals('job')") == [
        ("TRAIN", 100, 199), ("EVAL", 200, 300), ("TRAIN", 301, 1149), ("EVAL", 1150, 1300),
    ]  # fmt: skip


STEPS = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(0, 15), st.sampled_from(["TRAIN", "EVAL", "GLOBAL"])
    ),
    min_size=1,
    max_size=6,
)


@SLOW
@given(spans=STEPS)
def test_a_phase_holds_each_instant(small: SmallLake, spans: list[tuple[int, int, str]]) -> None:
    """Of the steps under way that which started last (or, of those at once, the shortest), if it
    is still under way, or else that which reaches furthest.
    """
    rows = [step(n, s, s + d, mode) for n, (s, d, mode) in enumerate(spans)]
    small.fill("events", rows)
    small.fill("_live_sources", [{"first_ns": 0, "last_ns": 60}])
    told = small.ask("SELECT phase, start_ns, end_ns FROM phase_intervals('job')")
    for at in range(61):
        holding = [phase for phase, start, end in told if start <= at <= end]
        assert len(holding) == 1
        started = [(s, s + d, mode) for s, d, mode in spans if s <= at]
        if any(end >= at for _, end, _ in started):
            last = max(s for s, _, _ in started)
            latest = min((end, mode) for s, end, mode in started if s == last)
            furthest = max((end, mode) for _, end, mode in started)
            assert holding == [latest[1] if latest[0] >= at else furthest[1]]
