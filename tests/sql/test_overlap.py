"""Slices against instants and intervals, held to a count of every pair."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.small_lake import SLOW, SPANS, SmallLake, step

TIMES = st.integers(0, 30)
SLICES = st.lists(st.tuples(SPANS, st.sampled_from("ab"), st.sampled_from(["n0", "n1"])))


@pytest.fixture(autouse=True)
def files(small: SmallLake) -> None:
    """What the files of the run reach over."""
    reach = {"first_ns": -(10**6), "last_ns": 2 * 10**18}
    small.fill("_live_sources", [reach, {**reach, "clock": "trace"}, {**reach, "run": "other"}])


def rows(slices: list[Any]) -> list[dict[str, Any]]:
    return [
        {"ts_ns": start, "end_ns": end, "name": name, "node": node}
        for (start, end), name, node in slices
    ]


@SLOW
@given(slices=SLICES, instants=st.lists(TIMES))
def test_overlap_at_counts_each_pair_of_a_slice_and_an_instant(
    small: SmallLake, slices: list[Any], instants: list[int]
) -> None:
    check_instants(small, slices, instants)


@settings(SLOW, max_examples=40)
@given(chance=st.randoms(use_true_random=False), number=st.integers(1, 40))
def test_overlap_at_of_many_slices_far_apart(
    small: SmallLake, chance: Random, number: int
) -> None:
    starts = [chance.randint(-20_000, 20_000) for _ in range(60)]
    slices = [((a, a + chance.choice([0, 1, 50, 400, 900, 30_000])), "a", "n0") for a in starts]
    instants = [chance.choice(starts) + chance.randint(-1, 900) for _ in range(number)]
    check_instants(small, slices, instants)


def check_instants(small: SmallLake, slices: list[Any], instants: list[int]) -> None:
    small.fill("events", rows(slices))
    want: dict[str, list[int]] = {}
    for (start, end), name, _ in slices:
        hits = sum(start < instant < end for instant in instants)
        if hits:
            events, all_hits, total = want.get(name, [0, 0, 0])
            want[name] = [events + 1, all_hits + hits, total + hits * (end - start)]
    got = small.ask("SELECT name, events, hits, dur_ns FROM overlap_at('job', ?)", [instants])
    assert {name: answer for name, *answer in got} == want


@SLOW
@given(slices=SLICES, intervals=st.lists(SPANS))
def test_overlap_during_counts_each_pair_of_a_slice_and_an_interval(
    small: SmallLake, slices: list[Any], intervals: list[tuple[int, int]]
) -> None:
    small.fill("events", rows(slices))
    want: dict[str, list[int]] = {}
    for (start, end), name, _ in slices:
        met = [(a, b) for a, b in intervals if end >= a and start <= b]
        if met:
            shared = sum(min(end, b) - max(start, a) for a, b in met)
            events, pairs, total, overlap = want.get(name, [0, 0, 0, 0])
            want[name] = [
                events + 1,
                pairs + len(met),
                total + len(met) * (end - start),
                overlap + shared,
            ]
    query = """
        SELECT name, events, pairs, dur_ns, overlap_ns
        FROM overlap_during('job', ?::STRUCT(start_ns BIGINT, end_ns BIGINT)[])
    """
    given_intervals = [{"start_ns": a, "end_ns": b} for a, b in intervals]
    got = small.ask(query, [given_intervals])
    assert {name: answer for name, *answer in got} == want


@SLOW
@given(slices=SLICES, steps=st.lists(st.tuples(SPANS, st.sampled_from(["n0", "n1"])), max_size=6))
def test_step_overlap_holds_the_steps_of_a_node_against_its_own_slices(
    small: SmallLake, slices: list[Any], steps: list[Any]
) -> None:
    markers = [
        {"ts_ns": a, "end_ns": b, "node": node, "step": number, "name": "Step:TRAIN"}
        for number, ((a, b), node) in enumerate(steps)
    ]
    small.fill("events", rows(slices) + markers)
    chosen = [(span, node) for number, (span, node) in enumerate(steps) if 1 <= number < 4]
    want: dict[str, list[int]] = {}
    for (start, end), name, node in slices:
        met = [(a, b) for (a, b), on in chosen if on == node and end >= a and start <= b]
        if met:
            shared = sum(min(end, b) - max(start, a) for a, b in met)
            pairs, overlap = want.get(name, [0, 0])
            want[name] = [pairs + len(met), overlap + shared]
    query = """
        SELECT name, pairs, overlap_ns FROM step_overlap('job', 1, 4)
        WHERE name IN ('a', 'b')
    """
    assert {name: answer for name, *answer in small.ask(query)} == want


def test_a_reversed_interval_counts_for_nothing(small: SmallLake) -> None:
    small.fill("events", [{"ts_ns": 0, "end_ns": 10}])
    assert small.ask("FROM overlap_during('job', [{start_ns: 8, end_ns: 2}])") == []


def test_other_runs_and_other_clocks_do_not_count(small: SmallLake) -> None:
    small.fill(
        "events",
        [
            {"ts_ns": 0, "end_ns": 10},
            {"ts_ns": 0, "end_ns": 10, "run": "other"},
            {"ts_ns": 0, "end_ns": 10, "clock": "trace", "hour": "relative"},
        ],
    )
    assert small.ask("SELECT hits FROM overlap_at('job', [5])") == [1]
    assert small.ask("SELECT hits FROM overlap_at('job', [5], clock_name := 'trace')") == [1]
    assert small.ask("SELECT pairs FROM overlap_during('job', [{start_ns: 5, end_ns: 6}])") == [1]


def test_sums_beyond_what_a_double_keeps(small: SmallLake) -> None:
    start = 1712195495519689047
    small.fill("events", [{"ts_ns": start, "end_ns": start + 10**17 + 1}])
    assert small.ask(
        "SELECT dur_ns FROM overlap_at('job', [?::BIGINT + 1, ?::BIGINT + 1])", [start, start]
    ) == [2 * 10**17 + 2]
    assert small.ask(
        "SELECT overlap_ns FROM overlap_during('job', [{start_ns: ?::BIGINT, end_ns: ?::BIGINT}])",
        [start + 1, start + 10**17],
    ) == [10**17 - 1]


def test_a_sum_that_no_column_holds_is_null_and_the_rest_is_there(small: SmallLake) -> None:
    """As of slices of a day over a hundred thousand intervals: more than 292 years together."""
    day = 86_400 * 10**9
    small.fill("events", [step(0, 0, day), {"ts_ns": 0, "end_ns": day}, {"ts_ns": 0, "end_ns": 9}])
    instants = [7] * 110_000
    query = "SELECT name, events, hits, dur_ns FROM overlap_at('job', ?)"
    assert small.ask(query, [instants]) == [
        ("Step:ModeKeys.TRAIN", 1, 110_000, None), ("op", 2, 220_000, None)
    ]  # fmt: skip
    intervals = [{"start_ns": 7, "end_ns": 8}] * 110_000
    columns = "SELECT name, events, pairs, dur_ns, overlap_ns FROM"
    query = f"{columns} overlap_during('job', ?::STRUCT(start_ns BIGINT, end_ns BIGINT)[])"
    assert small.ask(query, [intervals]) == [
        ("op", 2, 220_000, None, 220_000), ("Step:ModeKeys.TRAIN", 1, 110_000, None, 110_000)
    ]  # fmt: skip
    whole = [{"start_ns": 0, "end_ns": day}] * 110_000
    assert small.ask(query, [whole]) == [
        ("Step:ModeKeys.TRAIN", 1, 110_000, None, None), ("op", 2, 220_000, None, None)
    ]  # fmt: skip


def test_what_lies_after_intervals_of_a_thousand_years_is_summed_all_the_same(
    small: SmallLake,
) -> None:
    end = 4 * 10**18
    small.fill("events", [{"ts_ns": end - 5, "end_ns": end + 5}, step(0, 0, end)])
    intervals = [{"start_ns": 0, "end_ns": end}] * 8
    columns = "SELECT name, pairs, dur_ns, overlap_ns FROM"
    query = f"{columns} overlap_during('job', ?::STRUCT(start_ns BIGINT, end_ns BIGINT)[])"
    assert small.ask(query, [intervals]) == [
        ("Step:ModeKeys.TRAIN", 8, None, None), ("op", 8, 80, 40)
    ]  # fmt: skip


def test_an_interval_longer_than_a_number_of_nanoseconds_holds(small: SmallLake) -> None:
    small.fill("events", [{"ts_ns": 0, "end_ns": 10}])
    columns = "SELECT name, pairs, dur_ns, overlap_ns FROM"
    query = f"{columns} overlap_during('job', ?::STRUCT(start_ns BIGINT, end_ns BIGINT)[])"
    intervals = [{"start_ns": -9 * 10**18, "end_ns": 9 * 10**18}] * 2
    assert small.ask(query, [intervals]) == [("op", 2, 20, 20)]
