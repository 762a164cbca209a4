"""Statistics from the two frames: every value is counted by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from pipeline.compat.smdebug import PandasFrameAnalysis, Resource, StatsBy
from pipeline.compat.smdebug.frame import TIME

TRAIN, EVAL = "Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"
SYSTEM = ["timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"]
Event = tuple[str, int, int, int, str, int]


def step(mode: str, number: int, start: int, end: int, node: str = "n1", pid: int = 7) -> Event:
    return (mode, start, end, number, node, pid)


def framework(*events: Event) -> pd.DataFrame:
    rows = [
        {
            "start_time": f"t{start}", "end_time": f"t{end}", "start_time_us": start,
            "end_time_us": end, "tid": 0, "pid": pid, "framework_metric": name, "step": number,
            "bytes": -1, "process": name if name in (TRAIN, EVAL) else "ops", "nodeID": node,
        }
        for name, start, end, number, node, pid in events
    ]  # fmt: skip
    return pd.DataFrame(rows)


def system(*samples: tuple[int, float, str], node: str = "n1") -> pd.DataFrame:
    rows: list[Any] = [
        (f"t{at}", at, value, f"{kind}0", "Utilization", node, kind) for at, value, kind in samples
    ]
    return pd.DataFrame(rows, columns=SYSTEM)


def test_an_event_takes_the_step_of_its_own_node_that_holds_it() -> None:
    frame = framework(
        step(TRAIN, 0, 100, 200), step(TRAIN, 1, 200, 300), step(TRAIN, 5, 100, 300, "n2"),
        ("held", 110, 150, -1, "n1", 7), ("over the edge", 190, 210, -1, "n1", 7),
        ("other node", 110, 150, -1, "n2", 7), ("after all", 400, 410, -1, "n1", 7),
        ("before all", 10, 20, -1, "n2", 7), ("at the start", 100, 150, -1, "n1", 7),
        ("no such node", 110, 150, -1, "n3", 7),
    )  # fmt: skip
    given = frame.copy()
    analysis = PandasFrameAnalysis(system(), frame)
    steps = analysis.framework_metrics_df.set_index("framework_metric")["step"]
    assert steps.tail(7).to_dict() == {
        "held": 0, "over the edge": -1, "other node": 5, "after all": -1, "before all": -1,
        "at the start": -1, "no such node": -1,
    }  # fmt: skip
    assert analysis.framework_metrics_df["duration_us"].tolist()[:3] == [100, 100, 200]
    pd.testing.assert_frame_equal(frame, given)


def test_an_event_takes_the_step_of_its_own_process_first() -> None:
    frame = framework(
        step(TRAIN, 0, 0, 10), step(TRAIN, 1, 11, 20), step(TRAIN, 0, 2, 14, pid=8),
        ("own", 12, 13, -1, "n1", 8), ("of the node", 12, 13, -1, "n1", 99),
    )  # fmt: skip
    analysis = PandasFrameAnalysis(system(), frame)
    assert analysis.framework_metrics_df["step"].tolist() == [0, 1, 0, 0, 1]


def test_an_event_between_the_steps_of_a_longer_one_is_in_that() -> None:
    frame = framework(
        step(EVAL, 9, 0, 1000), step(TRAIN, 0, 100, 200), ("inner", 110, 120, -1, "n1", 7),
        ("outer", 300, 310, -1, "n1", 7), ("elsewhere", 300, 310, -1, "n1", 8),
    )  # fmt: skip
    analysis = PandasFrameAnalysis(system(), frame)
    assert analysis.framework_metrics_df["step"].tolist() == [9, 0, 0, 9, 9]


def test_job_statistics() -> None:
    samples = system((100, 1, "cpu"), (1100, 2, "cpu"))
    frame = framework(
        step(TRAIN, 1, 500, 600), step(TRAIN, 0, 300, 400), ("op", 310, 700, 0, "n1", 7)
    )
    stats = PandasFrameAnalysis(samples, frame).get_job_statistics()
    assert stats == {
        "start_time": "t100", "end_time": "t1100", "job_duration": 1000,
        "training_loop_start": "t300", "training_loop_end": "t700",
        "training_loop_duration": 400, "initialization": 300, "finalization": 400,
        "initialization_%": 30.0, "training_loop_%": 40.0, "finalization_%": 40.0,
    }  # fmt: skip
    assert (stats.job_duration, stats["job_duration"]) == (1000, 1000)
    assert "training_loop_start" in repr(stats)
    with pytest.raises(AttributeError, match="duration_of_job"):
        _ = stats.duration_of_job


def test_job_statistics_where_something_is_missing() -> None:
    later = framework(step(TRAIN, 5, 300, 400))
    sample = system((100, 1, "cpu"))
    one = PandasFrameAnalysis(sample, later).get_job_statistics()
    # The job of one sample has no duration that a share could be of.
    assert (one["training_loop_start"], one["job_duration"]) == ("t300", 0)
    assert (one["initialization_%"], one["training_loop_%"], one["finalization_%"]) == (0, 0, 0)
    unmeasured = PandasFrameAnalysis(system(), later).get_job_statistics()
    assert (unmeasured["start_time"], unmeasured["job_duration"]) == ("t300", 100)
    stepless = PandasFrameAnalysis(sample, framework(("op", 1, 2, -1, "n1", 7)))
    assert stepless.get_job_statistics()["training_loop_duration"] is None
    assert stepless.get_step_statistics() is not None


def test_step_statistics() -> None:
    frame = framework(
        step(TRAIN, 0, 0, 100), step(TRAIN, 0, 20, 130, "n2"), step(TRAIN, 1, 200, 300),
        ("op", 10, 20, -1, "n1", 7), ("op", 50, 60, -1, "n1", 7), ("op", 210, 230, -1, "n1", 7),
        ("op", 1000, 9000, -1, "n1", 7),
    )  # fmt: skip
    analysis = PandasFrameAnalysis(system(), frame)
    columns = ["duration_mean_us", "duration_min_us", "duration_max_us", "duration_p50_us"]
    phases = analysis.get_step_statistics()
    assert phases is not None
    assert list(phases.columns) == [
        "training_phase", *columns, "duration_p95_us", "duration_p99_us",
    ]  # fmt: skip
    assert phases.values.tolist() == [[TRAIN, 115, 100, 130, 115, 128.5, 129.7]]
    metrics = analysis.get_step_statistics(StatsBy.FRAMEWORK_METRICS)
    assert metrics is not None
    assert metrics[["framework_metric", *columns]].values.tolist() == [
        [TRAIN, 115, 100, 130, 115], ["op", 35, 20, 50, 35],
    ]  # fmt: skip
    processes = analysis.get_step_statistics(StatsBy.PROCESS)
    assert processes is not None
    assert processes["process"].tolist() == [TRAIN, "ops"]
    assert analysis.get_step_statistics("process") is None  # type: ignore[arg-type]


PHASES = framework(
    step(TRAIN, 0, 100, 200), step(TRAIN, 1, 250, 300), step(EVAL, 0, 400, 500),
    step(TRAIN, 2, 500, 600),
)  # fmt: skip


def test_training_phase_intervals() -> None:
    samples = system((10, 1, "cpu"), (1000, 1, "cpu"))
    analysis = PandasFrameAnalysis(samples, PHASES)
    found = analysis.get_training_phase_intervals()
    assert found is not None
    assert list(found.columns) == ["start_time_us", "end_time_us", "phase"]
    # TRAIN follows EVAL without a pause: there is nothing between them.
    assert found.values.tolist() == [
        [10, 99, f"Before {TRAIN}"], [100, 300, TRAIN],
        [301, 399, f"Between {EVAL} and {TRAIN}"], [400, 500, EVAL],
        [500, 600, TRAIN], [601, 1000, f"After {TRAIN}"],
    ]  # fmt: skip
    alone = analysis.get_training_phase_intervals(TRAIN)
    assert alone is not None
    assert alone.values.tolist() == [
        [10, 99, f"Before {TRAIN}"], [100, 200, TRAIN],
        [201, 249, f"Between {TRAIN} and {TRAIN}"], [250, 300, TRAIN],
        [301, 499, f"Between {TRAIN} and {TRAIN}"], [500, 600, TRAIN],
        [601, 1000, f"After {TRAIN}"],
    ]  # fmt: skip
    assert analysis.get_training_phase_intervals(["Step:ModeKeys.PREDICT"]) is None
    assert analysis.get_training_phase_intervals(3) is None  # type: ignore[arg-type]


def test_utilization() -> None:
    samples = pd.concat(
        [
            system((10, 8, "cpu"), (150, 20, "cpu"), (300, 40, "cpu"), (450, 90, "gpu")),
            system((150, 60, "cpu"), (2000, 5, "i/o"), node="n2"),
        ]
    )
    analysis = PandasFrameAnalysis(samples, PHASES)
    stats = analysis.get_utilization_stats()
    assert stats is not None
    assert list(stats.columns) == [
        "Resource", "nodeID", "utilization_mean", "utilization_min", "utilization_max",
        "utilization_p50", "utilization_p95", "utilization_p99",
    ]  # fmt: skip
    columns = ["Resource", "nodeID", "utilization_mean", "utilization_p50", "utilization_max"]
    assert stats[columns].values.tolist() == [
        ["cpu", "n1", pytest.approx(68 / 3), 20, 40], ["cpu", "n2", 60, 60, 60],
        ["gpu", "n1", 90, 90, 90], ["i/o", "n2", 5, 5, 5],
    ]  # fmt: skip
    phased = analysis.get_utilization_stats(
        [Resource.GPU, Resource.CPU], by=StatsBy.TRAINING_PHASE
    )
    assert phased is not None
    columns = ["Resource", "Training_phase", "nodeID", "utilization_mean"]
    assert phased[columns].values.tolist() == [
        ["gpu", EVAL, "n1", 90], ["cpu", f"Before {TRAIN}", "n1", 8],
        ["cpu", TRAIN, "n1", 30], ["cpu", TRAIN, "n2", 60],
    ]  # fmt: skip
    nothing = analysis.get_utilization_stats(Resource.NETWORK)
    assert nothing is not None
    assert nothing.empty
    assert analysis.get_utilization_stats("cpu") is None  # type: ignore[arg-type]
    assert analysis.get_utilization_stats(by="process") is None  # type: ignore[arg-type]


def test_device_usage() -> None:
    samples = system(
        (1, 5, "cpu"), (2, 10, "cpu"), (3, 10, "cpu"), (4, 95, "cpu"), (5, 50, "gpu"),
        (6, 101, "gpu"), (7, 5, "i/o"),
    )  # fmt: skip
    analysis = PandasFrameAnalysis(samples, PHASES)
    usage = analysis.get_device_usage_stats()
    assert list(usage.columns) == ["type", "nodeID", (0, 10), (10, 90), (90, 100)]
    # 10 belongs to the first range in the order given that holds it, which is 10 to 90.
    assert usage.values.tolist() == [["cpu", "n1", 1, 2, 1], ["gpu", "n1", 0, 1, 0]]
    halves = analysis.get_device_usage_stats(Resource.CPU, [(0, 50), (50, 100)])
    assert halves.values.tolist() == [["cpu", "n1", 3, 1]]
    for wrong in ([], [(1, 2, 3)], "0-10"):
        assert analysis.get_device_usage_stats(utilization_ranges=wrong).empty  # type: ignore[arg-type]
    assert analysis.get_device_usage_stats("cpu").empty  # type: ignore[arg-type]


def test_times_that_were_made_datetimes() -> None:
    text = "2020-08-05T22:57:0{}:000000"
    frame = framework(step(TRAIN, 0, 100, 200), ("held", 110, 150, -1, "n1", 7))
    frame["start_time"], frame["end_time"] = (
        pd.to_datetime([text.format(first), text.format(first + 1)], format=TIME)
        for first in (1, 3)
    )
    samples = system((0, 1.0, "cpu"), (300, 2.0, "cpu"))
    stats = PandasFrameAnalysis(samples, frame).get_job_statistics()
    assert (stats.start_time, stats.end_time) == ("t0", "t300")
    assert stats.training_loop_start == pd.Timestamp(2020, 8, 5, 22, 57, 1)
    assert stats.training_loop_end == pd.Timestamp(2020, 8, 5, 22, 57, 3)
    alone = PandasFrameAnalysis(system(), frame).get_job_statistics()
    assert alone.start_time == pd.Timestamp(2020, 8, 5, 22, 57, 1)
    assert (alone.job_duration, alone["training_loop_%"]) == (100, 100.0)
