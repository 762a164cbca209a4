"""``PandasFrame``: framework events and system metrics as pandas frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pipeline.compat.smdebug.job import job_of
from pipeline.compat.smdebug.readers import (
    LocalAlgorithmMetricsReader,
    LocalSystemMetricsReader,
    S3AlgorithmMetricsReader,
    S3SystemMetricsReader,
)
from pipeline.compat.smdebug.types import TimeUnits, nanoseconds_of
from pipeline.extras import extra
from pipeline.query.window import one_or_more

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["TIME", "PandasFrame"]

TIME = "%Y-%m-%dT%H:%M:%S:%f"
"""Format of the times in a frame, which are in UTC."""
_FRAMEWORK = [
    "start_time", "end_time", "start_time_us", "end_time_us", "tid", "pid", "framework_metric",
    "step", "bytes", "process", "nodeID",
]  # fmt: skip
_DATALOADER = [
    "start_time", "end_time", "start_time_us", "end_time_us", "duration_us", "pid",
    "framework_metric", "step", "worker_id", "num_workers", "pin_memory", "process", "node_id",
]  # fmt: skip
_SYSTEM = ["timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"]
_KEY = ["ingest_id", "seq"]
"""Tells events apart that are equal in everything else."""
_NANOSECONDS = {
    "timestamp_us": "ts_ns", "start_time_us": "ts_ns", "end_time_us": "end_ns",
    "duration_us": "dur_ns",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Frames = tuple["pd.DataFrame", "pd.DataFrame"]


class PandasFrame:
    """The events and metrics of a trace folder or URL as pandas frames.

    Times in columns that end in ``_us`` are microseconds since ``start_time``, which is the time
    in the name of the first system file (0 without any); an event before it has a negative one.
    ``use_in_memory_cache`` and ``scan_interval`` are taken and change nothing: sums do not depend
    on how the data is read.
    """

    def __init__(
        self, path: str, use_in_memory_cache: bool = False, scan_interval: int = 5000000000
    ) -> None:
        extra("pandas", "pandas")
        self.path = path
        self.interval = scan_interval
        self._job = job_of(str(path))
        remote = str(path).startswith("s3")
        system = S3SystemMetricsReader if remote else LocalSystemMetricsReader
        framework = S3AlgorithmMetricsReader if remote else LocalAlgorithmMetricsReader
        self.system_metrics_reader = system(path)
        self.framework_metrics_reader = framework(path)
        self.system_metrics: list[pd.DataFrame] = []
        self.framework_metrics: list[pd.DataFrame] = []
        self.start_time = self.system_metrics_reader.get_timestamp_of_first_available_file()

    def get_all_system_metrics(self, selected_system_metrics: Sequence[str] = ()) -> pd.DataFrame:
        """All system metrics, or those of the devices that are named."""
        return self._system(None, None, selected_system_metrics)

    def get_all_framework_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> pd.DataFrame:
        """All framework events, or those whose name or process is named."""
        return self._framework(_FRAMEWORK, selected=selected_framework_metrics)

    def get_all_dataloader_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Framework events in whose name or process a regular expression is found.

        Raises ``re.error`` for one that is none.
        """
        patterns = [re.compile(p) for p in _choice(selected_framework_metrics) or ()]
        if not patterns:
            return self._framework(_DATALOADER)
        names = self._job.framework_names()
        found = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        return self._shaped(self._job.framework_events, _DATALOADER, (None, None), selected=found)

    def get_profiler_data_by_time(
        self,
        start_time_us: float,
        end_time_us: float,
        cache_metrics: bool = False,
        selected_framework_metrics: Sequence[str] = (),
        selected_system_metrics: Sequence[str] = (),
        get_framework_metrics: bool = True,
        get_system_metrics: bool = True,
    ) -> Frames:
        """System metrics and framework events between two times, both included.

        ``cache_metrics`` gives those of all such calls so far together, each once.
        """
        unit = TimeUnits.MICROSECONDS
        start, end = nanoseconds_of(start_time_us, unit), nanoseconds_of(end_time_us, unit)
        nothing = (0, -1)
        system = self._shaped(
            self._job.system_events,
            [*_SYSTEM, *_KEY],
            (start, end) if get_system_metrics else nothing,
            selected=_choice(selected_system_metrics),
        )
        framework = self._framework(
            [*_FRAMEWORK, *_KEY],
            *((start, end) if get_framework_metrics else nothing),
            selected=selected_framework_metrics,
        )
        if cache_metrics:
            system = _together(self.system_metrics, system)
            framework = _together(self.framework_metrics, framework)
        return system[_SYSTEM], framework[_FRAMEWORK]

    def get_profiler_data_by_step(
        self, start_step: int, end_step: int, cache_metrics: bool = False
    ) -> Frames:
        """Framework events that carry a step from one to another, both included, and the system
        metrics from the first start to the last end of these.
        """
        framework = self._framework(_FRAMEWORK, steps=(start_step, end_step))
        if framework.empty:
            return self._system(0, -1, ()), framework
        # Not added in microseconds: doubles of the epoch's size hold no nanoseconds.
        zero, unit = self.start_time * 1000, TimeUnits.MICROSECONDS
        first = zero + nanoseconds_of(framework["start_time_us"].min(), unit)
        last = zero + nanoseconds_of(framework["end_time_us"].max(), unit)
        return self._system(first, last, ()), framework

    def get_framework_metrics_by_timesteps(
        self, timestep_list: Sequence[str] = (), selected_framework_metrics: Sequence[str] = ()
    ) -> tuple[dict[str, float], dict[str, int], dict[str, int]]:
        """What was under way at instants: of each process the share of the largest sum of
        durations, of each operator the sum in microseconds, of each training phase the same.

        Every instant counts, the last one too.
        """
        instants = [self.convert_datetime_to_timestamp(text) * 1000 for text in timestep_list]
        self._job.look_again(max(instants, default=0), is_system=False)
        rows = self._job.run.overlap_at(instants)
        rows = _selected(rows, selected_framework_metrics)
        processes = _sums(rows, "process_name")
        training = {name: sum_us for name, sum_us in processes.items() if "Step" in name}
        others = {name: sum_us for name, sum_us in processes.items() if "Step" not in name}
        operators = {n: total for n, total in _sums(rows, "name").items() if "Step" not in n}
        return _shares(others), operators, training

    def get_framework_metrics_by_begin_and_end_timesteps(
        self,
        begin_timestep_list: Sequence[str],
        end_timestep_list: Sequence[str],
        selected_framework_metrics: Sequence[str] = (),
    ) -> tuple[dict[str, float], dict[str, float]]:
        """What was under way during ranges of time, ends included: of each process and of each
        operator the share of the largest sum of durations.
        """
        ranges = [
            (self.convert_datetime_to_timestamp(a), self.convert_datetime_to_timestamp(b))
            for a, b in zip(begin_timestep_list, end_timestep_list, strict=False)
        ]
        # As it always was: a range that is reversed holds nothing.
        ranges = [(begin, end) for begin, end in ranges if begin <= end]
        latest = max((end for _, end in ranges), default=0)
        self._job.look_again(latest * 1000, is_system=False)
        rows = self._job.run.overlap_during(ranges, unit="us")
        rows = _selected(rows, selected_framework_metrics)
        rows = rows.filter(~rows["name"].str.contains("Step", literal=True))
        return _shares(_sums(rows, "process_name")), _shares(_sums(rows, "name"))

    def convert_datetime_to_timestamp(self, timestamp: str | datetime) -> int:
        """Microseconds since the epoch of a time such as ``2020-08-05T22:57:00:574111``, or of a
        datetime, which without a zone is in UTC.
        """
        if isinstance(timestamp, datetime):
            moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        else:
            moment = datetime.strptime(f"{timestamp}+0000", f"{TIME}%z")
        return (moment - _EPOCH) // timedelta(microseconds=1)

    def _framework(
        self,
        columns: list[str],
        start: int | None = None,
        end: int | None = None,
        selected: Sequence[str] = (),
        **chosen: Any,
    ) -> pd.DataFrame:
        """Framework events with these of the old columns; no ``selected`` are all."""
        chosen["selected"] = _choice(selected)
        return self._shaped(self._job.framework_events, columns, (start, end), **chosen)

    def _system(self, start: int | None, end: int | None, selected: Sequence[str]) -> pd.DataFrame:
        bounds = (start, end)
        return self._shaped(self._job.system_events, _SYSTEM, bounds, selected=_choice(selected))

    def _shaped(
        self,
        ask: Callable[..., pa.Table],
        columns: list[str],
        bounds: tuple[int | None, int | None],
        **chosen: Any,
    ) -> pd.DataFrame:
        """The frame of the old columns; times count from the start of the system metrics."""
        sources = [_NANOSECONDS.get(column, column) for column in columns]
        frame = ask(sources, *bounds, **chosen).to_pandas()
        for column, source in zip(columns, sources, strict=True):
            if source != column:
                zero = 0 if column == "duration_us" else self.start_time * 1000
                # Samples are told to the microsecond, as they always were.
                ns, is_whole = frame[source] - zero, column == "timestamp_us"
                frame[source] = ns // 1000 if is_whole else _microseconds(ns)
        return frame.set_axis(columns, axis="columns")


def _together(cached: list[pd.DataFrame], frame: pd.DataFrame) -> pd.DataFrame:
    """All rows of frames so far: one that lies in two ranges is there once."""
    rows = extra("pandas", "pandas").concat([*cached, frame], ignore_index=True)
    cached[:] = [rows.drop_duplicates(_KEY, ignore_index=True)]
    return cached[0]


def _microseconds(ns: pd.Series) -> pd.Series:
    """Whole numbers where all are whole, as in most files."""
    return ns / 1000 if (ns % 1000).any() else ns // 1000


def _choice(names: Sequence[str]) -> list[str] | None:
    """The names that are asked for; None for all, which no names stand for."""
    return one_or_more(names) or None


def _selected(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    chosen = _choice(names)
    if chosen is None:
        return rows
    return rows.filter(pl.col("name").is_in(chosen) | pl.col("process_name").is_in(chosen))


def _sums(rows: pl.DataFrame, by: str) -> dict[str, Any]:
    """Sums of durations in microseconds."""
    import polars as pl

    sums = rows.group_by(by, maintain_order=True).agg(pl.sum("dur_ns")).rows()
    return {name: ns / 1000 if ns % 1000 else ns // 1000 for name, ns in sums}


def _shares(sums: dict[str, Any]) -> dict[str, float]:
    """Each sum as a share of the largest; 0 where that is 0."""
    largest = max(sums.values(), default=0)
    return {name: sum_us / largest if largest else 0.0 for name, sum_us in sums.items()}
