"""One run of the lake, and the questions that can be asked about it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.arguments import is_number
from pipeline.errors import UsageError
from pipeline.query.spans import clock_of, find_steps, interval_of, known_mode
from pipeline.query.timeline import Timeline, write_timeline
from pipeline.query.window import (
    StepRange,
    Steps,
    Time,
    multiple,
    nanoseconds,
    one_or_more,
)
from pipeline.sqlfiles import sql_text

if TYPE_CHECKING:
    import polars as pl

    from pipeline.store.lake import Store

__all__ = ["Question", "Run"]

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Question:
    """A query with its parameters, for ``Store.sql`` or for a result that is streamed."""

    query: str
    params: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A training job in the lake; make one with ``Store.run``.

    Every method gives a polars frame; times are nanoseconds since the epoch, or since the zero of
    the trace where the run has one trace without a base and nothing else. Questions that compare
    times leave files without a base out of a run that has others, and raise ``UsageError`` where
    it has several of these only: their times do not compare.
    """

    store: Store
    name: str

    def sources(self) -> pl.DataFrame:
        """The files of the run; columns as in the view ``sources``."""
        return self.store.sql("SELECT * FROM sources WHERE run = $run ORDER BY uri", self._run)

    def steps(self, mode: str | None = None) -> pl.DataFrame:
        """The training steps by start, of all modes or of one; columns as in view ``steps``."""
        return self._answer(self.steps_question(mode))

    def steps_question(self, mode: str | None = None) -> Question:
        """The query of ``steps``."""
        return self._question(sql_text("queries/list_steps"), mode=self._known(mode))

    def step_interval(
        self, first: int, until: int | None = None, mode: str | None = None
    ) -> pl.DataFrame:
        """From the start of one step to just before another, or to the end of the steps.

        ``mode`` chooses among steps; by default those of profilers (ProfilerStep, device) count
        where nothing else has the first. One row: ``start_ns``, ``end_ns``, both included. Raises
        ``UsageError`` where there is no such step, or the second does not start after the first.
        """
        start, end = self._interval(StepRange.of(StepRange(first, until, mode)))
        return self.store.sql("SELECT $a AS start_ns, $b AS end_ns", {"a": start, "b": end})

    def events(
        self,
        start: Time | None = None,
        end: Time | None = None,
        unit: str = "ns",
        steps: Steps | None = None,
        kinds: Names = None,
        names: Names = None,
        processes: Names = None,
        sources: Names = None,
    ) -> pl.DataFrame:
        """Events that were under way in a range of time or of steps, by start.

        Both ends of a time are included; ``unit`` is s, ms, us or ns. ``steps`` is a step, or
        (first, until) without the second, or with a mode "EVAL 2:4" (by default all modes, but
        those of profilers only where nothing else has the first step). ``kinds``, ``names`` and
        ``processes`` choose by these columns, ``sources`` by the endings of the files' names, as
        in ``"model_timeline.json"``. Columns as in the view ``events``.
        """
        return self._answer(
            self.events_question(start, end, unit, steps, kinds, names, processes, sources)
        )

    def events_question(
        self,
        start: Time | None = None,
        end: Time | None = None,
        unit: str = "ns",
        steps: Steps | None = None,
        kinds: Names = None,
        names: Names = None,
        processes: Names = None,
        sources: Names = None,
    ) -> Question:
        """The query of ``events``."""
        chosen = {"kinds": kinds, "names": names, "processes": processes, "uris": sources}
        return self._ranged("queries/run_events", start, end, unit, steps, chosen)

    def metrics(
        self,
        start: Time | None = None,
        end: Time | None = None,
        unit: str = "ns",
        steps: Steps | None = None,
        resources: Names = None,
        metrics: Names = None,
        devices: Names = None,
        nodes: Names = None,
    ) -> pl.DataFrame:
        """Samples in a range of time or of steps, by time; ranges as in ``events``.

        Columns as in the view ``metrics``; the other arguments choose by these.
        """
        return self._answer(
            self.metrics_question(start, end, unit, steps, resources, metrics, devices, nodes)
        )

    def metrics_question(
        self,
        start: Time | None = None,
        end: Time | None = None,
        unit: str = "ns",
        steps: Steps | None = None,
        resources: Names = None,
        metrics: Names = None,
        devices: Names = None,
        nodes: Names = None,
    ) -> Question:
        """The query of ``metrics``."""
        chosen = {"resources": resources, "metrics": metrics, "devices": devices, "nodes": nodes}
        return self._ranged("queries/run_metrics", start, end, unit, steps, chosen)

    def step_events(self, mode: str | None = None) -> pl.DataFrame:
        """Every event with its step, of any mode or of one, and how that was decided; columns as
        in ``step_events``.
        """
        query = "FROM step_events($run, of_mode := $mode) ORDER BY ts_ns, ingest_id, seq"
        return self._macro(query, mode=self._known(mode))

    def overlap_at(self, timestamps: Iterable[Time], unit: str = "ns") -> pl.DataFrame:
        """What ran at these instants (strictly inside); columns as in ``overlap_at``."""
        if not isinstance(timestamps, Iterable):
            raise UsageError(f"{timestamps!r} are no times: give several")
        instants = [nanoseconds(moment, unit) for moment in timestamps]
        query = "FROM overlap_at($run, $instants::BIGINT[], clock_name := $clock)"
        return self._macro(query, instants=instants, clock=self._clock())

    def overlap_during(
        self, intervals: Iterable[tuple[Time, Time]] | pl.DataFrame, unit: str = "ns"
    ) -> pl.DataFrame:
        """What ran during these intervals, ends included; columns as in ``overlap_during``.

        ``intervals`` are pairs, or a frame with ``start_ns`` and ``end_ns``. Raises ``UsageError``
        for one that ends before it starts.
        """
        return self._answer(self.overlap_during_question(intervals, unit))

    def overlap_during_question(
        self, intervals: Iterable[tuple[Time, Time]] | pl.DataFrame, unit: str = "ns"
    ) -> Question:
        """The query of ``overlap_during``."""
        import polars as pl

        if isinstance(intervals, pl.DataFrame):
            intervals, unit = intervals.select("start_ns", "end_ns").iter_rows(), "ns"
        if not isinstance(intervals, Iterable):
            raise UsageError(f"{intervals!r} are no intervals: give several")
        starts, ends = [], []
        for interval in intervals:
            try:
                start, end = interval
            except (TypeError, ValueError):
                raise UsageError(f"{interval!r} is no interval: give (start, end)") from None
            if start is None or end is None:
                raise UsageError(f"{interval!r} has an open end: give both")
            low, high = _range(start, end, unit)
            starts.append(low)
            ends.append(high)
        text = sql_text("queries/run_overlap")
        return self._question(text, starts=starts, ends=ends, clock=self._clock())

    def overlap_steps(self, steps: Steps) -> pl.DataFrame:
        """What ran during steps, each on its own node and rank; columns as in ``step_overlap``."""
        return self._answer(self.overlap_steps_question(steps))

    def overlap_steps_question(self, steps: Steps) -> Question:
        """The query of ``overlap_steps``."""
        chosen = StepRange.of(steps)
        find_steps(self.store, self.name, chosen)
        query = "FROM step_overlap($run, $first, $until, clock_name := $clock, of_mode := $mode)"
        bounds = {"first": chosen.first, "until": chosen.until, "mode": chosen.mode}
        return self._question(query, **bounds, clock=self._clock())

    def step_metrics(self) -> pl.DataFrame:
        """Each system metric in each step; columns as in ``step_metrics``."""
        return self._macro("FROM step_metrics($run, clock_name := $clock)", clock=self._clock())

    def phase_metrics(self) -> pl.DataFrame:
        """Each system metric in each training phase; columns as in ``phase_metrics``."""
        return self._macro("FROM phase_metrics($run, clock_name := $clock)", clock=self._clock())

    def operator_metrics(self, metric: str = "GPUUtilization") -> pl.DataFrame:
        """One system metric while each operator ran; columns as in ``operator_metrics``."""
        query = "FROM operator_metrics($run, $metric, clock_name := $clock)"
        return self._macro(query, metric=metric, clock=self._clock())

    def step_statistics(self, by: str = "mode", mode: str | None = None) -> pl.DataFrame:
        """Durations by step ``mode``, ``process`` or ``operator``, in steps of all modes or of
        one; columns as in ``step_statistics``.
        """
        return self._answer(self.step_statistics_question(by, mode))

    def step_statistics_question(self, by: str = "mode", mode: str | None = None) -> Question:
        """The query of ``step_statistics``."""
        if by not in ("mode", "process", "operator"):
            raise UsageError(f"no statistics by {by!r}: give mode, process or operator")
        query = "FROM step_statistics($run, $by, of_mode := $mode)"
        return self._question(query, by=by, mode=self._known(mode))

    def step_outliers(self, factor: float = 2, mode: str | None = None) -> pl.DataFrame:
        """Steps of at least ``factor`` times the median, of all modes or of one; columns as in
        ``step_outliers``. Raises ``UsageError`` for a factor below 1.
        """
        return self._answer(self.step_outliers_question(factor, mode))

    def step_outliers_question(self, factor: float = 2, mode: str | None = None) -> Question:
        """The query of ``step_outliers``."""
        query = "FROM step_outliers($run, factor := $factor, of_mode := $mode)"
        return self._question(query, factor=multiple(factor), mode=self._known(mode))

    def phases(self) -> pl.DataFrame:
        """Initialization, training loop and finalization; columns as in ``job_phases``."""
        return self._macro("FROM job_phases($run, clock_name := $clock)", clock=self._clock())

    def phase_intervals(self) -> pl.DataFrame:
        """The training phases of each node in turn; columns as in ``phase_intervals``."""
        return self._macro("FROM phase_intervals($run, clock_name := $clock)", clock=self._clock())

    def utilization(self, by_phase: bool = False) -> pl.DataFrame:
        """How busy resources were, by training phase if asked; columns as in ``utilization``."""
        query = "FROM utilization($run, by_phase := $by_phase, clock_name := $clock)"
        return self._macro(query, by_phase=by_phase, clock=self._clock())

    def utilization_ranges(self, edges: Sequence[float] = (0, 10, 90, 100)) -> pl.DataFrame:
        """Share of time in ranges of utilisation; columns as in ``utilization_ranges``.

        Raises ``UsageError`` where the edges do not ascend.
        """
        bounds = [float(edge) for edge in edges]
        if len(bounds) < 2 or any(not a < b for a, b in pairwise(bounds)):
            raise UsageError(f"edges {bounds} do not ascend: give two or more, as in 0, 50, 100")
        query = "FROM utilization_ranges($run, edges := $edges, clock_name := $clock)"
        return self._macro(query, edges=bounds, clock=self._clock())

    def dataloader(self) -> pl.DataFrame:
        """What the data loaders did; columns as in ``dataloader_statistics``."""
        return self._macro("FROM dataloader_statistics($run)")

    def dataloader_outliers(self, factor: float = 2) -> pl.DataFrame:
        """Calls of a multiple of the median; columns as in ``dataloader_outliers``."""
        query = "FROM dataloader_outliers($run, factor := $factor)"
        return self._macro(query, factor=multiple(factor))

    def dataloader_batch_times(self) -> pl.DataFrame:
        """Time from batch to batch; columns as in ``dataloader_batch_times``."""
        return self._macro("FROM dataloader_batch_times($run)")

    def merge_timeline(
        self,
        out: str | os.PathLike[str],
        start: Time | None = None,
        end: Time | None = None,
        unit: str = "ns",
        steps: Steps | None = None,
        sources: Names = None,
        metrics: bool = True,
        low_gpu: float | None = None,
    ) -> Path:
        """Write one Chrome trace of a range of time or of steps; gives its path.

        Chrome's and Perfetto's viewers open it; ``.gz`` or ``.zst`` at the end of its name
        compresses. Ranges as in ``events``; ``sources`` chooses files of events, as there;
        ``metrics`` adds samples as counters; ``low_gpu`` adds an instant wherever a GPU was used
        less, in percent. Raises ``UsageError`` where a source or a threshold makes no sense.

        Times are microseconds since the epoch. Where some have nanoseconds, which a viewer would
        lose, they count from the first one, and the metadata event
        ``start_time_since_epoch_in_micros`` says which that is.
        """
        low, high = self._bounds(start, end, unit, steps)
        chosen = one_or_more(sources)
        for ending in chosen or ():
            if not any(uri.endswith(ending) for uri in self.sources()["uri"]):
                raise UsageError(f"no file of run {self.name!r} ends in {ending!r}")
        if low_gpu is not None and not (is_number(low_gpu) and math.isfinite(low_gpu)):
            raise UsageError(f"a GPU utilisation of {low_gpu}: give percent")
        timeline = Timeline(self.name, low, high, self._clock(), chosen, metrics, low_gpu)
        return write_timeline(self.store, timeline, out)

    @property
    def _run(self) -> dict[str, str]:
        return {"run": self.name}

    def _question(self, query: str, **params: Any) -> Question:
        return Question(query, {**self._run, **params})

    def _answer(self, question: Question) -> pl.DataFrame:
        return self.store.sql(question.query, question.params)

    def _macro(self, query: str, **params: Any) -> pl.DataFrame:
        return self._answer(self._question(query, **params))

    def _clock(self) -> str:
        return clock_of(self.store, self.name)

    def _interval(self, steps: StepRange) -> tuple[int, int]:
        return interval_of(self.store, self.name, steps)

    def _known(self, mode: str | None) -> str | None:
        return known_mode(self.store, self.name, mode)

    def _bounds(
        self, start: Time | None, end: Time | None, unit: str, steps: Steps | None
    ) -> tuple[int | None, int | None]:
        """First and last nanosecond of a range of time or of steps; None for no bound."""
        if steps is None:
            return _range(start, end, unit)
        if start is not None or end is not None:
            raise UsageError("give a range of steps or of time, not both")
        return self._interval(StepRange.of(steps))

    def _ranged(
        self,
        query: str,
        start: Time | None,
        end: Time | None,
        unit: str,
        steps: Steps | None,
        chosen: dict[str, Names],
    ) -> Question:
        """A query over a range, with lists of what is chosen."""
        low, high = self._bounds(start, end, unit, steps)
        clock = None if low is None and high is None else self._clock()
        lists = {key: one_or_more(names) for key, names in chosen.items()}
        bounds = {"from": low, "until": high, "clock": clock}
        return self._question(sql_text(query), **bounds, **lists)


def _range(start: Time | None, end: Time | None, unit: str) -> tuple[Any, Any]:
    nanoseconds(0, unit)
    low = None if start is None else nanoseconds(start, unit)
    high = None if end is None else nanoseconds(end, unit)
    if low is not None and high is not None and low > high:
        raise UsageError(f"the range from {start} to {end} is reversed: give the start first")
    return low, high
