-- Samples of one run by time. $run: its name; $from, $until: nanoseconds, both included, null for
-- no bound; $clock: epoch, trace or null for both; $resources, $metrics, $devices, $nodes: lists of
-- what is taken, null for all.
-- Columns as in the view metrics.
SELECT *
FROM metrics_between($run, $from, $until, clock_name := $clock)
WHERE
    ($resources IS NULL OR list_contains($resources, resource))
    AND ($metrics IS NULL OR list_contains($metrics, metric))
    AND ($devices IS NULL OR list_contains($devices, device))
    AND ($nodes IS NULL OR list_contains($nodes, node))
ORDER BY ts_ns, ingest_id, seq
