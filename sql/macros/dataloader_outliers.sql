-- Which activities of the data loaders took at least factor times the median of their name?
-- Columns: activity, node, rank, name, pid, worker_id, ts_ns, dur_ns, median_ns (nanoseconds),
-- ratio; the worst come first.
-- Example: SELECT * FROM dataloader_outliers('job', factor := 5);
CREATE OR REPLACE MACRO dataloader_outliers(run_name, factor := 2) AS TABLE
SELECT
    activity, node, rank, name, pid, worker_id, ts_ns, dur_ns, median_ns,
    dur_ns / NULLIF(median_ns, 0) AS ratio
FROM (
    SELECT *, median(dur_ns) OVER (PARTITION BY activity, name) AS median_ns
    FROM dataloader_calls
    WHERE run = run_name
)
WHERE dur_ns >= factor * median_ns AND dur_ns > median_ns
ORDER BY ratio DESC NULLS FIRST, ts_ns;

COMMENT ON MACRO TABLE dataloader_outliers IS 'Iterators, workers and batches that took a multiple of the median.';
