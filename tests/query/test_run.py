"""Questions to a run, on real jobs and on small ones with odd clocks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline.errors import UsageError

FIRST = 1594662618874598


def chrome(folder: Path, name: str, events: list[dict[str, Any]], **document: Any) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({**document, "traceEvents": events}))
    return path


def test_events_of_a_range_of_time(traces: pipeline.Store) -> None:
    run = traces.run("merge_traces")
    rows = run.events(FIRST, 1594662623418701, unit="us")
    assert rows.height == 231
    assert rows["ts_ns"].is_sorted()
    model = run.events(FIRST, 1594662623418701, unit="us", sources="model_timeline.json")
    assert model.height == 216
    steps = run.events(
        FIRST, 1594662623418701, unit="us", processes=["Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"]
    )
    assert steps.height == 15
    assert run.events(names="IteratorGetNextOp::DoCompute", kinds="slice").height == 40
    assert run.events(names=[]).height == 0
    assert run.events(end=0).columns == rows.columns


def test_events_and_samples_of_steps(traces: pipeline.Store) -> None:
    run = traces.run("merge_traces")
    assert run.events(steps=(2, 4)).height == 22
    assert run.events(steps="3:9").height == 66
    assert run.events(steps=range(0, 1)).height == 242
    assert run.step_interval(2, 4).rows() == [(1594662617507447000, 1594662617676640999)]
    assert run.metrics(steps=(2, 4)).height == 0
    assert run.steps().filter(mode="TRAIN")["step"].to_list() == list(range(30))


def test_kernels_take_the_step_of_their_launch(traces: pipeline.Store) -> None:
    """Each kernel of a profiled training step, counted by its launch in that step."""
    rows = traces.sql(
        """
        SELECT step, count(*) FROM step_events('traces') JOIN sources USING (ingest_id)
        WHERE ends_with(uri, 'v100_rank1_of_2.json.gz') AND category = 'kernel'
            AND step_source = 'launch'
        GROUP BY step ORDER BY step
        """
    ).rows()
    launches = traces.sql(
        """
        WITH e AS (
            SELECT events.* FROM events JOIN sources USING (ingest_id)
            WHERE ends_with(uri, 'v100_rank1_of_2.json.gz')
        )
        SELECT s.step, count(*)
        FROM e AS s
        JOIN e AS l ON l.ts_ns >= s.ts_ns AND l.end_ns <= s.end_ns
        JOIN e AS k ON k.correlation = l.correlation
        WHERE s.name LIKE 'ProfilerStep#%' AND s.category = 'user_annotation'
            AND l.category = 'cuda_runtime' AND k.category = 'kernel'
        GROUP BY s.step ORDER BY s.step
        """
    ).rows()
    assert rows == launches
    assert len(rows) >= 2


def test_overlap_by_pairs_frames_and_steps(traces: pipeline.Store) -> None:
    run = traces.run("merge_traces")
    pairs = run.overlap_during([(FIRST, FIRST + 100_000)], unit="us")
    frame = pl.DataFrame(
        {"start_ns": [FIRST * 1000], "end_ns": [(FIRST + 100_000) * 1000], "other": ["x"]}
    )
    assert run.overlap_during(frame).equals(pairs)
    assert pairs.height > 0
    assert run.overlap_during([]).height == 0
    assert run.overlap_at([FIRST], unit="us").columns == [
        "process_name", "name", "events", "hits", "dur_ns",
    ]  # fmt: skip
    steps = run.overlap_steps("2:4").filter(name="Step:ModeKeys.TRAIN")
    assert steps["pairs"].to_list() == [2]


def test_every_question_of_a_run_without_steps_or_metrics_is_empty(
    traces: pipeline.Store,
) -> None:
    run = traces.run("model_timeline_traces")
    questions: list[Callable[[], pl.DataFrame]] = [
        run.steps, run.step_metrics, run.phase_metrics, run.operator_metrics, run.step_statistics,
        run.step_outliers, run.phases, run.phase_intervals, run.utilization,
        run.utilization_ranges, run.metrics,
    ]  # fmt: skip
    for question in questions:
        answer = question()
        assert answer.height == 0
        assert len(answer.columns) > 3
    assert run.step_statistics("operator").height == 0
    assert run.dataloader()["calls"].to_list() == [100]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda run: run.events(steps=(90, 95)), "no steps 90:95: it has steps from 0 to 29"),
        (lambda run: run.step_interval(4, 2), "empty range"),
        (lambda run: run.events(9, 5), "reversed"),
        (lambda run: run.overlap_during([(9, 5)]), "reversed"),
        (lambda run: run.events(5, unit="days"), "no unit of time 'days'"),
        (lambda run: run.events(5, steps=3), "not both"),
        (lambda run: run.events(unit="h"), "no unit of time 'h'"),
        (lambda run: run.overlap_during([(None, 5)]), "has an open end"),
        (lambda run: run.overlap_during([(1, 2, 3)]), "is no interval"),
        (lambda run: run.step_outliers(float("nan")), "a number from 1 on"),
        (lambda run: run.step_outliers(-1), "a number from 1 on"),
        (lambda run: run.utilization_ranges([0, float("nan")]), "do not ascend"),
        (lambda run: run.events(steps="NONE 2:4"), "has no mode 'NONE': it has "),
        (lambda run: run.steps("NONE"), "has no mode 'NONE': it has "),
        (lambda run: run.step_events("NONE"), "has no mode 'NONE': it has "),
        (lambda run: run.step_statistics(mode="NONE"), "has no mode 'NONE': it has "),
        (lambda run: run.step_outliers(mode="NONE"), "has no mode 'NONE': it has "),
        (lambda run: run.step_outliers("x"), "a number from 1 on"),
        (lambda run: run.step_outliers(True), "a number from 1 on"),
        (lambda run: run.events(True), "True is no time"),
        (lambda run: run.events(steps=True), "True is no range of steps"),
        (lambda run: run.events(steps=(1.5, 2)), "1.5 is no step"),
        (lambda run: run.events(steps="1_0:1_2"), "is no range of steps"),
        (lambda run: run.events(steps="a"), "is no range of steps"),
        (lambda run: run.events(steps=""), "is no range of steps"),
        (lambda run: run.events(kinds=5), "5 is no name"),
        (lambda run: run.overlap_at(5), "5 are no times"),
        (lambda run: run.overlap_during(5), "5 are no intervals"),
        (lambda run: run.merge_timeline("x.json", sources="no.json"), "ends in 'no.json'"),
        (lambda run: run.merge_timeline("x.json", low_gpu=float("nan")), "of nan: give percent"),
        (lambda run: run.merge_timeline("x.json", low_gpu=float("inf")), "of inf: give percent"),
        (lambda run: run.step_statistics("hour"), "mode, process or operator"),
        (lambda run: run.utilization_ranges([50]), "do not ascend"),
        (lambda run: run.utilization_ranges([0, 50, 50]), "do not ascend"),
    ],
)
def test_bad_questions(
    traces: pipeline.Store, ask: Callable[[pipeline.Run], Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        ask(traces.run("merge_traces"))


def test_steps_of_a_run_without_steps(traces: pipeline.Store) -> None:
    with pytest.raises(UsageError, match="has no steps: choose by time"):
        traces.run("model_timeline_traces").events(steps=3)


def test_a_single_trace_without_a_base_has_a_clock_of_its_own(tmp_path: Path, lake: Path) -> None:
    events = [
        {"ph": "X", "name": "ProfilerStep#1", "ts": 10, "dur": 10, "pid": 1, "tid": 1},
        {"ph": "X", "name": "work", "ts": 12, "dur": 2.5, "pid": 1, "tid": 1},
        {"ph": "X", "name": "ProfilerStep#2", "ts": 30, "dur": 10, "pid": 1, "tid": 1},
    ]
    pipeline.ingest(chrome(tmp_path / "job", "a.json", events), lake, "job")
    with pipeline.Store.open(lake) as store:
        run = store.run("job")
        assert run.step_interval(1, 2).rows() == [(10_000, 29_999)]
        assert run.events(steps=1)["name"].to_list() == ["ProfilerStep#1", "work"]
        during = run.overlap_during([(13, 40)], unit="us").filter(name="work")
        assert during["overlap_ns"].to_list() == [1500]
        assert run.phases().filter(phase="between")["dur_ns"].to_list() == [10_000]


def test_traces_without_a_base_do_not_compare(tmp_path: Path, lake: Path) -> None:
    event = {"ph": "X", "name": "work", "ts": 12, "dur": 2, "pid": 1, "tid": 1}
    folder = tmp_path / "job"
    chrome(folder, "a.json", [event])
    chrome(folder, "b.json", [event])
    pipeline.ingest(folder, lake)
    with pipeline.Store.open(lake) as store:
        run = store.run("job")
        assert run.events().height == 2
        with pytest.raises(UsageError, match="do not compare: its 2 files have no common zero"):
            run.overlap_at([13_000])
        with pytest.raises(UsageError, match="do not compare"):
            run.events(start=0)


def test_files_without_a_base_stay_out_of_questions_of_time(tmp_path: Path, lake: Path) -> None:
    own = {"ph": "X", "name": "own", "ts": 12, "dur": 2, "pid": 1, "tid": 1}
    folder = tmp_path / "job"
    chrome(folder, "a.json", [own])
    chrome(folder, "b.json", [{**own, "name": "epoch", "ts": FIRST}])
    pipeline.ingest(folder, lake)
    with pipeline.Store.open(lake) as store:
        run = store.run("job")
        assert run.events(start=0)["name"].to_list() == ["epoch"]
        assert run.overlap_at([FIRST + 1], unit="us")["name"].to_list() == ["epoch"]
        assert sorted(run.events()["name"]) == ["epoch", "own"]


def test_a_window_reads_only_the_hours_that_reach_into_it(tmp_path: Path, lake: Path) -> None:
    """A day of one trace an hour, one event of which runs on into the next hour."""
    hour_us = 3_600_000_000
    base = FIRST - FIRST % hour_us
    folder = tmp_path / "day"
    for hour in range(24):
        start = base + hour * hour_us
        events = [
            {"ph": "X", "name": f"h{hour}", "ts": start + minute * 60_000_000, "dur": 1000,
             "pid": 1, "tid": 1}
            for minute in range(0, 60, 5)
        ]  # fmt: skip
        if hour == 9:
            events.append(
                {"ph": "X", "name": "long", "ts": start + hour_us - 1, "dur": 2 + 60_000_000,
                 "pid": 1, "tid": 1}
            )  # fmt: skip
        chrome(folder, f"{hour:02}.json", events)
    pipeline.ingest(folder, lake)

    def files_read(store: pipeline.Store, hour: int, margin_us: int) -> int:
        start = (base + hour * hour_us + margin_us) * 1000
        question = store.run("day").events_question(start, start + 1_800_000_000_000)
        plan = store.connection.execute(
            "EXPLAIN (ANALYZE, FORMAT json) " + question.query, question.params
        ).fetchall()
        found = json.dumps(json.loads(plan[0][1]))
        reads = [int(part.split('"')[0]) for part in found.split('"Total Files Read": "')[1:]]
        return max(reads)

    def read_by(store: pipeline.Store, query: str) -> int:
        plan = store.connection.execute("EXPLAIN (ANALYZE, FORMAT json) " + query).fetchall()
        (count,) = re.findall(r'"Total Files Read": "(\d+)"', plan[0][1])
        return int(count)

    with pipeline.Store.open(lake) as store:
        start, end = ((base + minutes * 60_000_000) * 1000 for minutes in (310, 340))
        span = f"[{{start_ns: {start}, end_ns: {end}}}]"
        assert read_by(store, f"FROM overlap_during('day', {span})") == 1
        assert read_by(store, f"FROM overlap_at('day', [{start}, {end}])") == 1
        assert len(list(lake.glob("events/run=day/*/*/*.parquet"))) == 24
        assert files_read(store, 5, 600_000_000) == 1
        assert files_read(store, 10, 600_000_000) == 1
        # What began in the hour before is not lost for it.
        assert files_read(store, 10, 0) == 2
        start = (base + 10 * hour_us) * 1000
        names = store.run("day").events(start, start + 1)["name"].to_list()
        assert names == ["long", "h10"]


def test_steps_whose_numbers_are_not_in_the_order_of_time(tmp_path: Path, lake: Path) -> None:
    """Step 1 runs after step 4, as after a restart: no interval, and yet steps that overlap."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 0,
         "args": {"start_time_since_epoch_in_micros": 1_600_000_000_000_000}},
        *({"ph": "X", "name": "Step:ModeKeys.TRAIN", "pid": 1, "tid": 1, "ts": start, "dur": 10,
           "args": {"step_num": str(number)}} for number, start in ((3, 0), (4, 20), (1, 40))),
    ]  # fmt: skip
    (tmp_path / "1600000000000000_1-n_pythontimeline.json").write_text(json.dumps(events))
    pipeline.ingest(tmp_path, lake, "job")
    with pipeline.Store.open(lake) as store:
        run = store.run("job")
        assert run.overlap_steps("1:4")["pairs"].to_list() == [2]
        with pytest.raises(UsageError, match="no interval: the second does not start after"):
            run.step_interval(1, 4)
