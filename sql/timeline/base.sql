-- The zero of a merged timeline: base_ns. Viewers keep times as doubles, which hold microseconds
-- since the epoch but no nanoseconds of it; where events have some, times count from the whole
-- microsecond before the first of all, and the timeline says which that is. Else it is 0.
-- $run, $from, $until, $clock, $metrics, $low_gpu: as in processes.sql.
SELECT
    COALESCE(CASE
        WHEN $clock = 'epoch' AND BOOL_OR(has_ns)
            THEN MIN(first_ns) - ((MIN(first_ns) % 1000) + 1000) % 1000
    END, 0) AS base_ns
FROM (
    SELECT MIN(ts_ns) AS first_ns, BOOL_OR(ts_ns % 1000 <> 0) AS has_ns
    FROM timeline_events($run, $from, $until, $clock)
    UNION ALL
    SELECT MIN(ts_ns), FALSE
    FROM timeline_samples($run, $from, $until, $clock)
    WHERE $metrics OR ($low_gpu IS NOT NULL AND metric = 'GPUUtilization' AND value < $low_gpu)
)
