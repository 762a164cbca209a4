"""``ProfilerTrial``: follows the data of a job that may still be running."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from pipeline.compat.smdebug.readers import (
    LocalAlgorithmMetricsReader,
    LocalSystemMetricsReader,
    S3AlgorithmMetricsReader,
    S3SystemMetricsReader,
)
from pipeline.compat.smdebug.types import ProfilerSystemEvent, TraceEvent
from pipeline.errors import NoMoreProfilerData
from pipeline.job_end import has_ended

__all__ = ["NoMoreProfilerData", "ProfilerTrial"]


class ProfilerTrial:
    """The profiler data of a job at a path or URL, waited for until the job has ended.

    Making one waits for the first file, of either kind, or for the end of the job. ``output_dir``
    is made where it is missing, with a folder ``.sagemaker-ignore`` in it. ``poll_seconds`` is how
    long a wait looks away.
    """

    poll_seconds = 10.0

    def __init__(self, name: str, trial_dir: str, output_dir: str) -> None:
        self.name = name
        self.path = str(trial_dir)
        self.logger = logging.getLogger(__name__)
        self.output_dir = output_dir
        self.temp_dir = str(Path(output_dir) / ".sagemaker-ignore")
        Path(self.temp_dir).mkdir(parents=True, exist_ok=True)
        remote = self.path.startswith("s3")
        system = S3SystemMetricsReader if remote else LocalSystemMetricsReader
        framework = S3AlgorithmMetricsReader if remote else LocalAlgorithmMetricsReader
        self.system_metrics_reader = system(self.path)
        self.framework_metrics_reader = framework(self.path)
        self.first_timestamp = 0
        self.get_first_timestamp()

    def job_finished(self) -> bool:
        """Whether the job has ended, or was told to stop and its grace time has passed."""
        return has_ended(self.path)

    def get_first_timestamp(self) -> None:
        """Wait until there is data; its first time, in microseconds, is ``first_timestamp``."""
        while not self.first_timestamp:
            # Asked before looking, so that the last files of a job are not missed.
            finished = self.job_finished()
            self.system_metrics_reader.refresh_event_file_list()
            self.first_timestamp = min(self._times(0), default=0)
            if self.first_timestamp or finished:
                return
            self._wait("Waiting for profiler data.")

    def get_latest_timestamp(self) -> int:
        """Time in microseconds up to which data of each kind is there; 0 where none is.

        A job that writes one kind only has the time of that one.
        """
        self.system_metrics_reader.refresh_event_file_list()
        return min(self._times(1), default=0)

    def wait_for_data(self, end_time: int, start_time: int) -> None:
        """Wait until there is data up to ``end_time``, or the job has ended.

        Raises ``NoMoreProfilerData`` where it has ended and there is none from ``start_time`` on.
        """
        while True:
            finished = self.job_finished()
            latest = self.get_latest_timestamp()
            if end_time < latest:
                return
            if finished:
                if start_time >= latest:
                    raise NoMoreProfilerData(end_time)
                return
            if end_time == latest:
                return
            self._wait(f"There is data up to {latest}: waiting for {end_time}.")

    def get_system_metrics(self, start_time: float, end_time: float) -> list[ProfilerSystemEvent]:
        """Samples between two times in microseconds, both included."""
        return self.system_metrics_reader.get_events(start_time, end_time)

    def get_framework_metrics(self, start_time: float, end_time: float) -> list[TraceEvent]:
        """Events that were under way between two times in microseconds, both included."""
        return self.framework_metrics_reader.get_events(start_time, end_time)

    def _times(self, which: int) -> list[int]:
        """The first (0) or last (1) time of each kind of data that is there."""
        readers = (self.system_metrics_reader, self.framework_metrics_reader)
        times = [reader.get_current_time_range_for_event_query()[which] for reader in readers]
        return [moment for moment in times if moment]

    def _wait(self, why: str) -> None:
        self.logger.info(why)
        time.sleep(self.poll_seconds)
