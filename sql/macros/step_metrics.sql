-- What each system metric was in each step of its node. A sample holds until the next one.
-- Columns: node, rank (of the step), mode, step, start_ns, end_ns, resource, device, metric, unit,
-- samples (within the step), mean (of these), as_of (the last sample at or before the start),
-- time_weighted (mean over the time for which a sample holds; null where none does).
-- Example: SELECT step, time_weighted FROM step_metrics('job') WHERE metric = 'GPUUtilization';
CREATE OR REPLACE MACRO step_metrics(run_name, clock_name := 'epoch') AS TABLE
SELECT
    m.node, m.key.rank AS rank, m.key.mode AS mode, m.key.step AS step, m.start_ns, m.end_ns,
    m.resource, m.device, m.metric, m.unit, m.samples,
    m.sample_sum / NULLIF(m.samples, 0) AS mean, m.as_of,
    m.area / NULLIF(m.held_ns, 0) AS time_weighted
FROM _metrics_in(
    run_name,
    (
        SELECT LIST({
            key: {rank: rank, mode: mode, step: step},
            node: node, start_ns: start_ns, end_ns: end_ns
        })
        FROM steps
        WHERE run = run_name AND clock = clock_name AND complete
    ),
    clock_name
) AS m
-- A counter in the trace of one rank says nothing about the steps of another.
WHERE m.rank IS NULL OR m.key.rank IS NULL OR m.rank = m.key.rank
ORDER BY m.start_ns, m.node, rank, m.resource, m.device, m.metric;

COMMENT ON MACRO TABLE step_metrics IS 'Each system metric in each step: as of its start, mean, and weighted by time.';
