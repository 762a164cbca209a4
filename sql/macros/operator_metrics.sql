-- What one system metric was while each operator ran, on its own node: over all slices of a name,
-- each with the weight of its duration. A sample holds until the next one. A counter in the trace
-- of one rank says nothing about the operators of another.
-- Columns: process_name, name, device, metric, unit, samples (in a slice), mean_as_of (the mean of
-- the last samples before each slice), time_weighted (null where no sample holds).
-- Example: SELECT name, time_weighted FROM operator_metrics('job', 'GPUUtilization');
CREATE OR REPLACE MACRO operator_metrics(run_name, metric_name, clock_name := 'epoch') AS TABLE
SELECT
    key.process_name AS process_name, key.name AS name, device, metric, unit,
    SUM(samples)::BIGINT AS samples, AVG(as_of) AS mean_as_of,
    SUM(area) / NULLIF(SUM(held_ns), 0) AS time_weighted
FROM _metrics_in(
    run_name,
    (
        SELECT LIST({
            key: {process_name: process_name, name: name, rank: rank},
            node: node, start_ns: ts_ns, end_ns: end_ns
        })
        FROM events
        WHERE
            run = run_name AND clock = clock_name AND kind = 'slice' AND end_ns IS NOT NULL
    ),
    clock_name
)
WHERE metric = metric_name AND (rank IS NULL OR key.rank IS NULL OR rank = key.rank)
GROUP BY key.process_name, key.name, device, metric, unit
ORDER BY process_name, name, device;

COMMENT ON MACRO TABLE operator_metrics IS 'One system metric while each operator ran: as of its starts, and weighted by time.';
