"""Where steps lie, which events are theirs, and what they tell about a job."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.small_lake import SLOW, SPANS, SmallLake, step


def test_what_marks_a_step(small: SmallLake) -> None:
    small.fill(
        "events",
        [
            step(7, 0, 10),
            step(8, 20, 30, "EVAL"),
            {
                "name": "ProfilerStep#9", "category": "user_annotation", "step": 9,
                "ts_ns": 40, "end_ns": 50,
            },
            {
                "name": "ProfilerStep#9", "category": "gpu_user_annotation", "step": 9,
                "ts_ns": 45, "end_ns": 95,
            },
            {"name": "event/batch", "step": 3, "ts_ns": 60, "end_ns": 70, "rank": 1},
            {"name": "event/batch/forward", "step": 3, "ts_ns": 61, "end_ns": 62, "rank": 1},
            {"name": "event/eval_batch", "step": 4, "ts_ns": 80, "end_ns": 90, "rank": 1},
            {"name": "train", "process_name": "/host:CPU", "step": 5, "ts_ns": 100, "end_ns": 110},
            {
                "name": "6", "process_name": "/device:GPU:0", "thread_name": "Steps", "step": 6,
                "ts_ns": 120, "end_ns": 130,
            },
            {"name": "ProfilerStep#x", "ts_ns": 140, "end_ns": 150},
            {"name": "Forward", "step": 7, "ts_ns": 1, "end_ns": 5},
        ],
    )  # fmt: skip
    query = "SELECT mode, step, rank, start_ns, end_ns FROM steps ORDER BY start_ns"
    assert small.ask(query) == [
        ("TRAIN", 7, None, 0, 10),
        ("EVAL", 8, None, 20, 30),
        ("ProfilerStep", 9, None, 40, 50),
        ("TRAIN", 3, 1, 60, 70),
        ("EVAL", 4, 1, 80, 90),
        ("train", 5, None, 100, 110),
        ("device", 6, None, 120, 130),
    ]


def test_workers_of_one_rank_share_a_step_and_nodes_do_not(small: SmallLake) -> None:
    small.fill(
        "events",
        [step(1, 0, 10), step(1, 2, 14), step(1, 5, 11, node="node1"), step(2, 20, None)],
    )
    query = "SELECT node, step, start_ns, end_ns, dur_ns, complete, slices FROM steps ORDER BY ALL"
    assert small.ask(query) == [
        ("node0", 1, 0, 14, 14, True, 2),
        ("node0", 2, 20, None, None, False, 1),
        ("node1", 1, 5, 11, 6, True, 1),
    ]


def test_a_number_that_comes_again_is_a_step_of_its_own(small: SmallLake) -> None:
    """A job that went on from a checkpoint: steps 2 and 3 ran twice, 1000 later."""
    small.fill(
        "events",
        [
            *(step(n, 100 * n, 100 * n + 90) for n in (1, 2, 3)),
            *(step(n, 1000 + 100 * n, 1000 + 100 * n + 90) for n in (2, 3, 4)),
            {"name": "op", "process_name": "p", "ts_ns": 210, "end_ns": 220},
            {"name": "op", "process_name": "p", "ts_ns": 1210, "end_ns": 1230},
        ],
    )
    small.fill("_live_sources", [{"first_ns": 100, "last_ns": 1490}])
    query = "SELECT step, start_ns, dur_ns, slices FROM steps ORDER BY start_ns"
    assert small.ask(query) == [
        (1, 100, 90, 1), (2, 200, 90, 1), (3, 300, 90, 1),
        (2, 1200, 90, 1), (3, 1300, 90, 1), (4, 1400, 90, 1),
    ]  # fmt: skip
    statistics = "SELECT name, steps, mean_ns, max_ns FROM step_statistics('job', ?)"
    assert small.ask(statistics, ["mode"]) == [("TRAIN", 6, 90.0, 90)]
    assert ("p", 2, 15.0, 20) in small.ask(statistics, ["process"])
    assert small.ask("FROM step_outliers('job')") == []
    between = "SELECT dur_ns FROM job_phases('job') WHERE phase = 'between'"
    assert small.ask(between) == [10 + 10 + 810 + 10 + 10]
    overlap = "SELECT name, pairs, overlap_ns FROM step_overlap('job', 2, 3) WHERE name = 'op'"
    assert small.ask(overlap) == [("op", 2, 30)]


def test_steps_of_profilers_have_numbers_of_their_own(small: SmallLake) -> None:
    profiled = {"process_name": "python", "category": "user_annotation"}
    small.fill(
        "events",
        [
            *(step(n, 100 * n, 100 * n + 90) for n in range(1, 6)),
            *(
                {"name": f"ProfilerStep#{n + 2}", "step": n + 2, "ts_ns": 100 * n - 5,
                 "end_ns": 100 * n + 92, **profiled}
                for n in range(1, 6)
            ),
            {"name": "op", "process_name": "p", "ts_ns": 310, "end_ns": 320},
        ],
    )  # fmt: skip
    small.fill("_live_sources", [{"first_ns": 95, "last_ns": 592}])
    assert small.ask("SELECT start_ns, end_ns FROM step_interval('job', 3, 4)") == [(300, 399)]
    assert small.ask(
        "SELECT start_ns, end_ns FROM step_interval('job', 3, 4, of_mode := 'ProfilerStep')"
    ) == [(95, 194)]
    # Only the profiler has a step 6.
    assert small.ask("SELECT start_ns, end_ns FROM step_interval('job', 6, 7)") == [(395, 494)]
    overlap = (
        "SELECT pairs, overlap_ns FROM step_overlap('job', 3, 4, of_mode := ?) WHERE name = 'op'"
    )
    assert small.ask(overlap, [None]) == [(1, 10)]
    assert small.ask(overlap, ["ProfilerStep"]) == []
    statistics = (
        "SELECT steps FROM step_statistics('job', 'process', of_mode := ?) WHERE name = 'p'"
    )
    for mode in ("TRAIN", "ProfilerStep"):
        assert small.ask(statistics, [mode]) == [1]
    assert small.ask("SELECT phase, start_ns, end_ns FROM phase_intervals('job')") == [
        ("Before TRAIN", 95, 99), ("TRAIN", 100, 590), ("After TRAIN", 591, 592),
    ]  # fmt: skip


def test_a_step_that_never_ended_was_under_way(small: SmallLake) -> None:
    """Of a job that was killed, or still runs."""
    small.fill("events", [step(1, 100, None), step(2, 200, 250), step(3, 260, None)])
    small.fill("_live_sources", [{"first_ns": 50, "last_ns": 400}])
    assert small.ask("SELECT start_ns, end_ns FROM step_interval('job', 3, NULL)") == [(260, 400)]
    assert small.ask("SELECT phase, dur_ns FROM job_phases('job')") == [
        ("initialization", 50), ("training_loop", 300), ("between", 11), ("finalization", 0),
    ]  # fmt: skip
    assert small.ask("SELECT phase, start_ns, end_ns FROM phase_intervals('job')") == [
        ("Before TRAIN", 50, 99), ("TRAIN", 100, 400),
    ]  # fmt: skip


def test_step_interval_is_from_the_first_start_to_just_before_the_next(small: SmallLake) -> None:
    small.fill(
        "events",
        [step(0, 100, 110, "EVAL"), step(0, 50, 60), step(1, 70, 80), step(2, 65, 68, node="b")],
    )
    assert small.ask("FROM step_interval('job', 0, 1)") == [("epoch", None, 50, 69)]
    # Without a step 9 the interval goes to the last end of what there is.
    assert small.ask("FROM step_interval('job', 1, 9)") == [("epoch", None, 70, 80)]
    assert small.ask("FROM step_interval('job', 0, NULL)") == [("epoch", None, 50, 110)]
    assert small.ask("FROM step_interval('job', 0, 2)") == [("epoch", None, 50, 64)]
    for first, until in [(1, 0), (1, 1), (9, 10), (9, 0), (9, None)]:
        assert small.ask("FROM step_interval('job', ?, ?)", [first, until]) == []
    assert small.ask("FROM step_interval('other', 0, 1)") == []


def test_steps_on_clocks_of_their_own_are_kept_apart(small: SmallLake) -> None:
    own = {"clock": "trace", "hour": "relative"}
    small.fill(
        "events",
        [
            step(1, 5, 9, **own, ingest_id=1), step(2, 12, 15, **own, ingest_id=1),
            step(1, 900, 909, **own, ingest_id=2), step(2, 950, 960, **own, ingest_id=2),
        ],
    )  # fmt: skip
    assert small.ask("FROM step_interval('job', 1, 2) ORDER BY ALL") == [
        ("trace", 1, 5, 11),
        ("trace", 2, 900, 949),
    ]


def test_a_gpu_event_takes_the_step_of_its_launch(small: SmallLake) -> None:
    runtime = {"category": "cuda_runtime", "name": "cudaLaunchKernel"}
    kernel = {"category": "kernel", "name": "gemm"}
    small.fill(
        "events",
        [
            step(1, 0, 100), step(2, 100, 200),
            {**runtime, "ts_ns": 90, "end_ns": 95, "correlation": 7},
            {**kernel, "ts_ns": 120, "end_ns": 150, "correlation": 7},
            {**kernel, "ts_ns": 121, "end_ns": 151, "correlation": 7, "ingest_id": 2},
            {**kernel, "ts_ns": 130, "end_ns": 140, "correlation": 0},
            {**runtime, "ts_ns": 250, "end_ns": 251, "correlation": 8},
            {**kernel, "ts_ns": 160, "end_ns": 170, "correlation": 8},
            {"ts_ns": 99, "end_ns": 101, "name": "astride"},
            {"ts_ns": 150, "dur_ns": None, "name": "unfinished"},
            {"ts_ns": 10, "end_ns": 20, "step": 55, "name": "numbered"},
            {"ts_ns": 10, "end_ns": 20, "name": "elsewhere", "node": "node1"},
        ],
    )  # fmt: skip
    query = """
        SELECT name, ts_ns, step, step_mode, step_source FROM step_events('job')
        WHERE NOT starts_with(name, 'Step:') ORDER BY seq
    """
    assert small.ask(query) == [
        ("cudaLaunchKernel", 90, 1, "TRAIN", "inside"),
        ("gemm", 120, 1, "TRAIN", "launch"),
        ("gemm", 121, 2, "TRAIN", "inside"),
        ("gemm", 130, 2, "TRAIN", "inside"),
        ("cudaLaunchKernel", 250, None, None, None),
        ("gemm", 160, None, None, None),
        ("astride", 99, None, None, None),
        ("unfinished", 150, 2, "TRAIN", "inside"),
        ("numbered", 10, 55, None, "own"),
        ("elsewhere", 10, None, None, None),
    ]


@SLOW
@given(
    spans=st.lists(st.tuples(SPANS, st.sampled_from([0, 1])), max_size=8),
    events=st.lists(
        st.tuples(SPANS, st.sampled_from(["n0", "n1"]), st.sampled_from([None, 0, 1]))
    ),
)
def test_an_event_is_in_a_step_of_its_node_and_rank_that_holds_it(
    small: SmallLake, spans: list[Any], events: list[Any]
) -> None:
    """Steps follow each other, overlap, lie in each other, and start at once."""
    markers = [step(n, a, b, node="n0", rank=rank) for n, ((a, b), rank) in enumerate(spans)]
    plain = [
        {"ts_ns": a, "end_ns": b, "node": node, "rank": rank} for (a, b), node, rank in events
    ]
    small.fill("events", plain + markers)
    want = []
    for (a, b), node, rank in events:
        started = [
            (start, end, number)
            for number, ((start, end), of) in enumerate(spans)
            if (node, rank) == ("n0", of) and start <= a
        ]
        last = max(started, key=lambda s: (s[0], -s[1], -s[2]), default=None)
        furthest = max(started, key=lambda s: (s[1], s[2]), default=None)
        holder = next((s for s in (last, furthest) if s is not None and s[1] >= b), None)
        assert (holder is not None) == any(end >= b for _, end, _ in started)
        want.append(None if holder is None else holder[2])
    query = "SELECT step FROM step_events('job') WHERE name = 'op' ORDER BY seq"
    assert small.ask(query) == want


def test_step_statistics(small: SmallLake) -> None:
    small.fill(
        "events",
        [
            step(0, 0, 100), step(1, 100, 300), step(2, 300, 600), step(0, 600, 640, "EVAL"),
            {"ts_ns": 10, "end_ns": 20, "name": "a", "process_name": "p"},
            {"ts_ns": 30, "end_ns": 90, "name": "b", "process_name": "p"},
            {"ts_ns": 110, "end_ns": 130, "name": "a", "process_name": "p"},
            {"ts_ns": 610, "end_ns": 612, "name": "a", "process_name": "p"},
            {"ts_ns": 700, "end_ns": 712, "name": "a", "process_name": "p"},
        ],
    )  # fmt: skip
    columns = "SELECT name, steps, mean_ns, min_ns, max_ns, p50_ns, p95_ns, p99_ns"
    assert small.ask(f"{columns} FROM step_statistics('job', 'mode')") == [
        ("TRAIN", 3, 200.0, 100, 300, 200.0, 290.0, 298.0),
        ("EVAL", 1, 40.0, 40, 40, 40.0, 40.0, 40.0),
    ]
    assert small.ask(
        "SELECT name, steps, mean_ns FROM step_statistics('job', 'process') WHERE name = 'p'"
    ) == [("p", 3, (80 + 20 + 2) / 3)]
    assert small.ask(
        "SELECT name, steps, mean_ns FROM step_statistics('job', 'operator') WHERE name = 'a'"
    ) == [("a", 3, (10 + 20 + 2) / 3)]
    with pytest.raises(duckdb.Error, match="give mode, process or operator, not hour"):
        small.ask("FROM step_statistics('job', 'hour')")


def test_step_outliers(small: SmallLake) -> None:
    small.fill(
        "events",
        [step(n, 100 * n, 100 * n + length) for n, length in enumerate([10, 10, 10, 25, 90, 0])],
    )
    query = "SELECT step, dur_ns, median_ns, ratio FROM step_outliers('job')"
    assert small.ask(query) == [(4, 90, 10.0, 9.0), (3, 25, 10.0, 2.5)]
    assert small.ask("SELECT step FROM step_outliers('job', factor := 5)") == [4]


def test_dataloaders(small: SmallLake) -> None:
    name = "DataLoaderIter::GetNext"
    small.fill(
        "events",
        [
            {
                "name": "_MultiProcessingDataLoaderIter.__init__", "ts_ns": 0, "end_ns": 5,
                "args": '{"num_workers": 2, "pin_memory": true, "pid": 77}',
            },
            {"name": "DataLoaderWorker", "ts_ns": 1, "end_ns": 90, "args": '{"worker_id": 1}'},
            {"name": name, "ts_ns": 10, "end_ns": 12},
            {"name": name, "ts_ns": 20, "end_ns": 22},
            {"name": name, "ts_ns": 30, "end_ns": 39},
            {"name": name, "ts_ns": 60, "end_ns": 62},
            {"name": name, "ts_ns": 65, "end_ns": 67, "pid": 2},
            {"name": "enumerate(DataLoader)#_X.__next__", "ts_ns": 70, "end_ns": 71},
            {"name": "dataloader/train", "ts_ns": 72, "end_ns": 73},
            {"name": "aten::DataLoaderish", "ts_ns": 74, "end_ns": 75},
        ],
    )  # fmt: skip
    query = "SELECT activity, name, calls, median_ns, max_ns, outliers, num_workers, pin_memory"
    assert small.ask(f"{query} FROM dataloader_statistics('job')") == [
        ("get_next", name, 5, 2.0, 9, 1, None, None),
        ("get_next", "dataloader/train", 1, 1.0, 1, 0, None, None),
        ("get_next", "enumerate(DataLoader)#_X.__next__", 1, 1.0, 1, 0, None, None),
        (
            "iterator", "_MultiProcessingDataLoaderIter.__init__", 1, 5.0, 5, 0, [2], [True],
        ),
        ("worker", "DataLoaderWorker", 1, 89.0, 89, 0, None, None),
    ]  # fmt: skip
    assert small.ask("SELECT name, ts_ns, ratio FROM dataloader_outliers('job')") == [
        (name, 30, 4.5)
    ]
    query = (
        "SELECT pid, previous_ns, ts_ns, batch_ns, is_outlier FROM dataloader_batch_times('job')"
    )
    assert small.ask(query) == [
        (1, 10, 20, 10, False),
        (1, 20, 30, 10, False),
        (1, 30, 60, 30, True),
    ]


def test_a_number_of_its_own_is_looked_for_among_steps_of_that_number(small: SmallLake) -> None:
    """Steps of one node and rank that overlap, as of workers that share a rank."""
    small.fill(
        "events",
        [
            step(3, 0, 100), step(4, 10, 90),
            {"step": 3, "ts_ns": 20, "end_ns": 30}, {"step": 3, "ts_ns": 2, "end_ns": 5},
            {"step": 3, "ts_ns": 95, "end_ns": 101}, {"ts_ns": 20, "end_ns": 30},
        ],
    )  # fmt: skip
    query = "SELECT step, step_mode, step_start_ns, step_source FROM step_events('job')"
    assert small.ask(f"{query} ORDER BY seq") == [
        (3, "TRAIN", 0, "own"), (4, "TRAIN", 10, "own"), (3, "TRAIN", 0, "own"),
        (3, "TRAIN", 0, "own"), (3, None, None, "own"), (4, "TRAIN", 10, "inside"),
    ]  # fmt: skip
    query = "SELECT steps, max_ns FROM step_statistics('job', 'operator', of_mode := 'TRAIN')"
    # From 2 to 30 in step 3, and from 20 to 30 in step 4.
    assert small.ask(f"{query} WHERE name = 'op'") == [(2, 28)]


def test_an_unfinished_step_lasts_to_the_next_later_one_or_the_end_of_its_own_file(
    small: SmallLake,
) -> None:
    small.fill(
        "events",
        [
            step(1, 5, None, clock="trace", ingest_id=1),
            step(1, 7, None, clock="trace", ingest_id=2),
            step(1, 30, None), step(2, 30, 40), step(3, 50, None),
        ],
    )  # fmt: skip
    small.fill(
        "_live_sources",
        [
            {"clock": "trace", "ingest_id": 1, "last_ns": 50},
            {"clock": "trace", "ingest_id": 2, "last_ns": 1000}, {"last_ns": 60},
        ],
    )  # fmt: skip
    query = "SELECT clock, ingest_id, step, until_ns FROM _step_spans('job') ORDER BY ALL"
    assert small.ask(query) == [
        ("epoch", None, 1, 49), ("epoch", None, 2, 40), ("epoch", None, 3, 60),
        ("trace", 1, 1, 50), ("trace", 2, 1, 1000),
    ]  # fmt: skip
