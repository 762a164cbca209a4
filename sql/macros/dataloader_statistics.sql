-- How often and how long the data loaders set up iterators, kept workers and fetched batches.
-- Columns: activity, name, calls, total_ns, mean_ns, median_ns, p95_ns, max_ns (nanoseconds),
-- outliers (calls of at least twice the median), num_workers, pin_memory (the values that occur).
-- Example: SELECT * FROM dataloader_statistics('job');
CREATE OR REPLACE MACRO dataloader_statistics(run_name) AS TABLE
SELECT
    activity, name, COUNT(*) AS calls, SUM(dur_ns)::BIGINT AS total_ns, AVG(dur_ns) AS mean_ns,
    ANY_VALUE(median_ns) AS median_ns, quantile_cont(dur_ns, 0.95) AS p95_ns,
    MAX(dur_ns) AS max_ns,
    COUNT(*) FILTER (dur_ns >= 2 * median_ns AND dur_ns > median_ns) AS outliers,
    LIST_SORT(LIST(DISTINCT num_workers) FILTER (num_workers IS NOT NULL)) AS num_workers,
    LIST_SORT(LIST(DISTINCT pin_memory) FILTER (pin_memory IS NOT NULL)) AS pin_memory
FROM (
    SELECT *, median(dur_ns) OVER (PARTITION BY activity, name) AS median_ns
    FROM dataloader_calls
    WHERE run = run_name
)
GROUP BY activity, name
ORDER BY activity, total_ns DESC, name;

COMMENT ON MACRO TABLE dataloader_statistics IS 'Counts and durations of what the data loaders did.';
