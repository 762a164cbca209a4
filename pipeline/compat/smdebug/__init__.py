"""smdebug's profiler reader and frame API on top of a lake, so that notebooks keep working.

Change ``from smdebug.profiler... import`` to ``from pipeline.compat.smdebug import``. They take a
raw trace folder or URL as before and keep a lake behind it, at most for the life of the process.
New files are seen by a new reader or frame, on ``refresh_event_file_list()``, and by a question
that comes within three minutes of the newest file. pandas comes with ``tracelake[pandas]``.

===========================================  =============================  =======================
name                                         in SQL                         what differs
===========================================  =============================  =======================
``LocalAlgorithmMetricsReader``,             ``compat/framework_events``    1 to 5, 18, 20 to 22
``S3AlgorithmMetricsReader``
``….get_events_by_step``                     ``compat/step_starts``         9
``….get_timestamp_of_…_available_file``      ``compat/file_times``          20
``LocalSystemMetricsReader``,                ``compat/system_events``       20, 21
``S3SystemMetricsReader``
``PandasFrame.get_all_framework_metrics``,   ``compat/framework_events``    1, 2, 3, 4, 5, 6
``get_profiler_data_by_time``,              ``compat/system_events``        20 to 23
``get_profiler_data_by_step``
``PandasFrame.get_all_dataloader_metrics``   ``compat/framework_events``    1, 2, 23
``….get_framework_metrics_by_timesteps``     ``overlap_at``                 1, 7, 8
``….by_begin_and_end_timesteps``             ``overlap_during``             1, 7, 8
``PandasFrameAnalysis``                      ``compat/frame_steps``         13
``….get_job_statistics``                     ``compat/frame_job``           8, 14
``….get_step_statistics``, ``StatsBy``       ``compat/frame_step_…``        13
``….get_utilization_stats``, ``Resource``    ``compat/frame_utilization``
``….get_device_usage_stats``                 ``compat/frame_usage``         15
``….get_training_phase_intervals``           ``compat/frame_phases``        16
``PT_dataloader_analysis``                   ``compat/frame_outliers``,     17
                                             ``compat/frame_batches``
``ProfilerTrial``, ``NoMoreProfilerData``    ``compat/file_times``          19
``MergedTimeline``, ``MergeUnit``            ``sql/timeline``               1, 2, 3, 4, 5, 10, 11
``SMProfilerEvents``,                        ``compat/framework_events``    3, 4, 5, 12
``TensorboardProfilerEvents``,
``HorovodProfilerEvents``
``ProfilerSystemEvents``                     ``compat/system_events``       12
===========================================  =============================  =======================

1. Sums do not depend on ``scan_interval``: no event is read twice at the edge of a chunk, and
   events that are equal in everything are kept, where the old frame dropped them as duplicates.
2. Events before the first system file are there; their times in a frame are negative. So are the
   samples that a file holds beyond the time in its name, at which the old frame stopped reading.
3. Begins and ends are paired by thread, not by process.
4. The base time of a file is its own, and does not leak into the next.
5. ``tid`` is the thread of the event (0 without one), the same in every process, not a hash.
   ``node_id`` of framework events is the machine by its whole name, without the pid, as in system
   metrics.
6. A frame whose system metrics are missing starts at 0, and nothing waits for them.
7. The last of the given instants counts like every other.
8. Where nothing was under way for any time the shares are 0, not a division by zero.
9. An end before the start gives no events. A step that only other files than the Python timelines
   number is there too.
10. The threshold in ``{"lowgpu": (70,)}`` counts; 85 percent is what it is by default.
11. Every sample in the range is a counter, not only those up to the last low one. Steps that are
    not there are an error.
12. A file that is compressed, still open or cut off is read as far as it goes. One that is not
    there, or is no trace, is a ``SourceError``.
13. The step of an event without a number is that of its own process, or else its own node, that
    holds it, never that of another node. Where no step holds it, it has -1 and counts in no
    statistics of steps, and is no IndexError. The frames that are given stay as they are.
14. ``training_loop_duration`` is a number. The loop starts with the lowest step there is, which
    need not be 0; without steps its figures are None. The statistics are a dict.
15. A range that no sample lies in has a column of zeros.
16. Intervals without length (a phase right after another) are left out.
17. Batches are counted by the starts of the calls. The texts that are printed are other ones.
    ``plot_the_window`` gives a Plotly figure (``tracelake[plot]``), which a notebook shows.
18. There are no parsers behind a reader, so ``get_all_event_parsers`` and ``parse_event_files``
    are not there; nor is what only the old code itself used, such as the ``open`` and ``close`` of
    ``MergedTimeline`` and attributes like ``step_time_df``, ``tensor_table`` or ``prefix``.
19. Nothing waits without end: a job without system metrics has the times of its framework files,
    and one that has ended without any data is not waited for.
20. Every trace below the path counts, in any layout and format, and not only those in
    ``framework/`` and ``system/``; one that was merged from the others does not. The time of a
    TensorFlow trace is that of its last event. A file that was deleted stays in the answers.
21. ``event_type`` for framework events is a ``UsageError``, and so is a local path for S3 readers.
22. Where the begin and the end of a slice both have arguments it has those of both; of one that
    both name it has the end's.
23. ``pin_memory`` is True for the text "True" as well. What ``cache_metrics`` keeps in
    ``system_metrics`` and ``framework_metrics`` are frames, not lists of rows.
"""

from pipeline.compat.smdebug.analysis import PandasFrameAnalysis, Resource, StatsBy
from pipeline.compat.smdebug.dataloader import PT_dataloader_analysis
from pipeline.compat.smdebug.frame import PandasFrame
from pipeline.compat.smdebug.parsers import (
    HorovodProfilerEvents,
    ProfilerSystemEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)
from pipeline.compat.smdebug.readers import (
    LocalAlgorithmMetricsReader,
    LocalSystemMetricsReader,
    S3AlgorithmMetricsReader,
    S3SystemMetricsReader,
)
from pipeline.compat.smdebug.timeline import MergedTimeline, MergeUnit
from pipeline.compat.smdebug.trial import NoMoreProfilerData, ProfilerTrial
from pipeline.compat.smdebug.types import ProfilerSystemEvent, TimeUnits, TraceEvent

__all__ = [
    "HorovodProfilerEvents",
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "MergeUnit",
    "MergedTimeline",
    "NoMoreProfilerData",
    "PT_dataloader_analysis",
    "PandasFrame",
    "PandasFrameAnalysis",
    "ProfilerSystemEvent",
    "ProfilerSystemEvents",
    "ProfilerTrial",
    "Resource",
    "S3AlgorithmMetricsReader",
    "S3SystemMetricsReader",
    "SMProfilerEvents",
    "StatsBy",
    "TensorboardProfilerEvents",
    "TimeUnits",
    "TraceEvent",
]
