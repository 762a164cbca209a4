"""What PyTorch's data loaders did: outliers, batches and the plot of a window."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from pipeline.compat.smdebug import PandasFrame, PT_dataloader_analysis
from pipeline.errors import UsageError
from tests.compat.jobs import BASE, event, write_framework, write_system

GET_NEXT = "_MultiProcessingDataLoaderIter::GetNext"
INIT = "DataLoaderIterInitialize"


@pytest.fixture
def analysis(tmp_path: Path) -> PT_dataloader_analysis:
    worker = {"worker_id": 1, "pid": 41}
    setting = {"num_workers": 4, "pin_memory": True}
    kind = "_MultiProcessingDataLoaderIter.__init__"
    calls = [
        event(GET_NEXT, start, 10 if start < 600 else 50, args=worker)
        for start in (0, 100, 200, 300, 900)
    ]
    write_framework(
        tmp_path,
        [
            *calls,
            event(GET_NEXT, 350, 10, args={"worker_id": 2, "pid": 42}),
            event(INIT, 0, 4, args={"name": kind, **setting}),
            event(INIT, 500, 6, args={"name": kind, **setting}),
            event("DataLoaderWorker", 0, 900, args={"worker_id": 0}),
            event("DataLoaderWorker", 0, 900, args={"worker_id": 1}),
            event("other", 0, 10_000_000),
        ],
    )
    write_system(tmp_path, BASE // 1_000_000)
    return PT_dataloader_analysis(PandasFrame(str(tmp_path)))


def test_calls_for_a_batch(
    analysis: PT_dataloader_analysis, capsys: pytest.CaptureFixture[str]
) -> None:
    outliers = analysis.analyze_dataloader_getnext()
    assert outliers is not None
    assert outliers.values.tolist() == [
        ["2020-08-05T22:57:00:000900", "2020-08-05T22:57:00:000950", 50, 1],
    ]  # fmt: skip
    assert list(outliers.columns) == ["start_time", "end_time", "duration_us", "worker_id"]
    assert capsys.readouterr().out.splitlines() == [
        "6 GetNext calls: median 10.0 us, longest 50 us",
        "1 GetNext calls took at least twice the median:",
    ]


def test_batches_are_counted_in_each_process(
    analysis: PT_dataloader_analysis, capsys: pytest.CaptureFixture[str]
) -> None:
    outliers = analysis.analyze_batchtime()
    assert outliers is not None
    moment = "2020-08-05 22:57:00.000"
    assert outliers.values.tolist() == [
        [pd.Timestamp(f"{moment}300"), pd.Timestamp(f"{moment}900"), 0.0006, 1],
    ]  # fmt: skip
    assert list(outliers.columns) == [
        "previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id",
    ]  # fmt: skip
    assert capsys.readouterr().out.startswith("Median time of a batch: 0.0001 seconds\n")


def test_workers_and_iterators(
    analysis: PT_dataloader_analysis, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analysis.analyze_dataloaderWorkers() is None
    assert capsys.readouterr().out.splitlines() == [
        "2 workers: median 900.0 us, longest 900 us",
        "No workers took at least twice the median.",
    ]
    analysis.analyze_dataloaderIter_initialization()
    kind = "_MultiProcessingDataLoaderIter.__init__"
    assert capsys.readouterr().out.splitlines() == [
        f"The training uses {kind} with pin_memory True and 4 workers.",
        f"2 set-ups of {kind}: median 5.0 us, longest 6 us",
        f"No set-ups of {kind} took at least twice the median.",
        "The training does not use _SingleProcessDataLoaderIter.__init__.",
    ]


def test_nothing_to_analyse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_framework(tmp_path, [event("other", 0, 1)])
    analysis = PT_dataloader_analysis(PandasFrame(str(tmp_path)))
    analysis.analyze_dataloaderIter_initialization()
    assert analysis.analyze_dataloaderWorkers() is None
    assert analysis.analyze_dataloader_getnext() is None
    assert analysis.analyze_batchtime() is None
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_the_plot_of_a_window(analysis: PT_dataloader_analysis) -> None:
    figure = analysis.plot_the_window(BASE, BASE + 1_000_000)
    (line,) = figure.data
    assert (line.name, list(line.y)) == ("cpu0", [5.0])
    assert pd.Timestamp(line.x[0]) == pd.Timestamp("2020-08-05 22:57:00.5")
    assert [title.text for title in figure.layout.annotations] == ["CPUUtilization-nodeid:algo-1"]
    assert not analysis.plot_the_window(BASE, BASE + 1_000_000, select_dimensions=["GPU"]).data
    assert not analysis.plot_the_window(BASE, BASE + 1_000_000, select_events=["^gpu"]).data
    assert not analysis.plot_the_window(0, 1).data


def test_without_plotly_the_error_names_the_extra(
    analysis: PT_dataloader_analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.subplots", None)
    with pytest.raises(UsageError, match=r"pip install 'tracelake\[plot\]'"):
        analysis.plot_the_window(0, 1)
