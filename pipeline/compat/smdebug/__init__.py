"""smdebug's profiler reader and frame API on top of a lake, so that notebooks keep working.

Change ``from smdebug.profiler... import`` to ``from pipeline.compat.smdebug import``. They take a
raw trace folder or URL as before, keep a lake behind it for the life of the process, and see new
files on ``refresh_event_file_list()``. pandas comes with ``tracelake[pandas]``.

===========================================  =============================  =======================
name                                         in SQL                         what differs
===========================================  =============================  =======================
``LocalAlgorithmMetricsReader``,             ``compat/framework_events``    1, 2, 3, 4, 5
``S3AlgorithmMetricsReader``
``….get_events_by_step``                     ``step_interval``              9
``LocalSystemMetricsReader``,                ``compat/system_events``
``S3SystemMetricsReader``
``PandasFrame.get_all_framework_metrics``,   ``compat/framework_events``    1, 2, 3, 4, 5, 6
``get_profiler_data_by_time``,
``get_profiler_data_by_step``
``PandasFrame.get_all_dataloader_metrics``   ``compat/framework_events``    1, 2
``….get_framework_metrics_by_timesteps``     ``overlap_at``                 1, 7, 8
``….by_begin_and_end_timesteps``             ``overlap_during``             1, 7, 8
``MergedTimeline``, ``MergeUnit``            ``sql/timeline``               1, 2, 3, 4, 5, 10, 11
``SMProfilerEvents``,                        ``compat/framework_events``    3, 4, 5, 12
``TensorboardProfilerEvents``,
``HorovodProfilerEvents``
``ProfilerSystemEvents``                     ``compat/system_events``       12
===========================================  =============================  =======================

1. Sums do not depend on ``scan_interval``: no event is read twice at the edge of a chunk, and
   events that are equal in everything are kept, where the old frame dropped them as duplicates.
2. Events before the first system file are there; their times in a frame are negative.
3. Begins and ends are paired by thread, not by process.
4. The base time of a file is its own, and does not leak into the next.
5. ``tid`` is the thread of the event (0 without one), the same in every process, not a hash.
   ``node_id`` of framework events is the machine without the pid, as in system metrics.
6. A frame whose system metrics are missing starts at 0, and nothing waits for them.
7. The last of the given instants counts like every other.
8. Where nothing was under way for any time the shares are 0, not a division by zero.
9. An end before the start gives no events.
10. The threshold in ``{"lowgpu": (70,)}`` counts; 85 percent is what it is by default.
11. Every sample in the range is a counter, not only those up to the last low one. Steps that are
    not there are an error.
12. A file that is compressed, still open or cut off is read as far as it goes.
"""

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
from pipeline.compat.smdebug.types import ProfilerSystemEvent, TimeUnits, TraceEvent

__all__ = [
    "HorovodProfilerEvents",
    "LocalAlgorithmMetricsReader",
    "LocalSystemMetricsReader",
    "MergeUnit",
    "MergedTimeline",
    "PandasFrame",
    "ProfilerSystemEvent",
    "ProfilerSystemEvents",
    "S3AlgorithmMetricsReader",
    "S3SystemMetricsReader",
    "SMProfilerEvents",
    "TensorboardProfilerEvents",
    "TimeUnits",
    "TraceEvent",
]
