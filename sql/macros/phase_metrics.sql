-- What each system metric was in each training phase (as in phase_intervals) of its node. A sample
-- holds until the next one.
-- Columns: node, rank (of the process whose counter it is; null for the machine's), phase,
-- resource, device, metric, unit, samples, mean (of the samples), as_of (the last sample at or
-- before its first start), time_weighted (mean over the time for which a sample holds; null where
-- none does).
-- Example: SELECT phase, time_weighted FROM phase_metrics('job') WHERE metric = 'GPUUtilization';
CREATE OR REPLACE MACRO phase_metrics(run_name, clock_name := 'epoch') AS TABLE
SELECT
    node, rank, key AS phase, resource, device, metric, unit, SUM(samples)::BIGINT AS samples,
    SUM(sample_sum) / NULLIF(SUM(samples), 0) AS mean, ARG_MIN_NULL(as_of, start_ns) AS as_of,
    SUM(area) / NULLIF(SUM(held_ns), 0) AS time_weighted
FROM _metrics_in(
    run_name,
    (
        SELECT LIST({key: phase, node: node, start_ns: start_ns, end_ns: end_ns})
        FROM phase_intervals(run_name, clock_name := clock_name)
    ),
    clock_name
)
GROUP BY node, rank, phase, resource, device, metric, unit
ORDER BY node, rank, phase, resource, device, metric;

COMMENT ON MACRO TABLE phase_metrics IS 'Each system metric in each training phase: mean, and weighted by time.';
