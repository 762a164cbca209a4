"""``PT_dataloader_analysis``: what PyTorch's data loaders did, printed and as frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.compat.smdebug.analysis import ask_frames
from pipeline.compat.smdebug.frame import TIME, PandasFrame
from pipeline.extras import extra

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PT_dataloader_analysis"]

_ITERATORS = ("_MultiProcessingDataLoaderIter.__init__", "_SingleProcessDataLoaderIter.__init__")
_BATCHES = ["previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id"]


class PT_dataloader_analysis:
    """Set-up of iterators, lives of workers, calls for the next batch, and batches.

    An outlier takes at least twice the median. Durations are microseconds, batches seconds.
    """

    def __init__(self, pandas_frame: PandasFrame) -> None:
        self.pd_data_frame = pandas_frame
        ask = pandas_frame.get_all_dataloader_metrics
        self.dataIter_metric = ask([".*DataLoaderIter::GetNext"])
        self.initialize_metric = ask(["DataLoaderIterInitialize"])
        self.dataWorker_metric = ask(["DataLoaderWorker"])
        self.analyze_dataIter = len(self.dataIter_metric) > 0
        self.analyze_initializer = len(self.initialize_metric) > 0
        self.analyze_workers = len(self.dataWorker_metric) > 0

    def analyze_dataloaderIter_initialization(self) -> None:
        """Print how often and how long iterators were set up, and with which settings."""
        if not self.analyze_initializer:
            print("There are no events of setting up iterators (DataLoaderIterInitialize).")
            return
        for kind in _ITERATORS:
            calls = self.initialize_metric
            calls = calls[calls["framework_metric"] == kind]
            if calls.empty:
                print(f"The training does not use {kind}.")
                continue
            pinned, workers = (
                ", ".join(str(value) for value in sorted(calls[name].unique()))
                for name in ("pin_memory", "num_workers")
            )
            print(f"The training uses {kind} with pin_memory {pinned} and {workers} workers.")
            self._report(calls, f"set-ups of {kind}")

    def analyze_dataloaderWorkers(self) -> pd.DataFrame | None:
        """Print how many workers there were and how long they lived; the outliers, or None."""
        if not self.analyze_workers:
            print("There are no events of workers (DataLoaderWorker).")
            return None
        return self._report(self.dataWorker_metric, "workers")

    def analyze_dataloader_getnext(self) -> pd.DataFrame | None:
        """Print how many calls for a batch there were and how long; the outliers, or None."""
        if not self.analyze_dataIter:
            print("There are no calls for a batch (DataLoaderIter::GetNext).")
            return None
        return self._report(self.dataIter_metric, "GetNext calls")

    def analyze_batchtime(self) -> pd.DataFrame | None:
        """Print the median time from batch to batch in each process; the outliers, or None."""
        if not self.analyze_dataIter:
            print("There are no calls for a batch (DataLoaderIter::GetNext).")
            return None
        batches = ask_frames("frame_batches", {"calls": self.dataIter_metric})
        print(f"Median time of a batch: {batches['BatchTime_in_seconds'].median()} seconds")
        outliers = batches.loc[batches["is_outlier"], _BATCHES].reset_index(drop=True)
        return _none_if_empty(outliers, "batches")

    def plot_the_window(
        self,
        start_timestamp: float,
        end_timestamp: float,
        select_events: Sequence[str] = (".*",),
        select_dimensions: Sequence[str] = (".*",),
    ) -> Any:
        """A Plotly figure of the system metrics between two times in microseconds.

        ``select_dimensions`` are regular expressions for a metric with its node, such as
        ``CPUUtilization-nodeid:algo-1``, ``select_events`` for a device, such as ``cpu0``. Plotly
        comes with ``tracelake[plot]``.
        """
        subplots = extra("plotly.subplots", "plot")
        samples, _ = self.pd_data_frame.get_profiler_data_by_time(
            start_timestamp, end_timestamp, get_framework_metrics=False
        )
        samples["chart"] = samples["dimension"] + "-nodeid:" + samples["nodeID"]
        chosen = samples["chart"].str.contains("|".join(select_dimensions), regex=True)
        chosen &= samples["system_metric"].str.contains("|".join(select_events), regex=True)
        charts = samples[chosen].groupby("chart")
        figure = subplots.make_subplots(
            rows=max(len(charts), 1), shared_xaxes=True, subplot_titles=list(charts.groups)
        )
        for row, (_, chart) in enumerate(charts, start=1):
            for device, line in chart.groupby("system_metric"):
                times = extra("pandas", "pandas").to_datetime(line["timestamp"], format=TIME)
                figure.add_scatter(x=times, y=line["value"], name=device, row=row, col=1)
        return figure

    def _report(self, calls: pd.DataFrame, what: str) -> pd.DataFrame | None:
        longest, median = calls["duration_us"].max(), calls["duration_us"].median()
        print(f"{len(calls)} {what}: median {median} us, longest {longest} us")
        outliers = ask_frames("frame_outliers", {"calls": calls})
        return _none_if_empty(outliers, what)


def _none_if_empty(outliers: pd.DataFrame, what: str) -> pd.DataFrame | None:
    if outliers.empty:
        print(f"No {what} took at least twice the median.")
        return None
    print(f"{len(outliers)} {what} took at least twice the median:")
    return outliers
