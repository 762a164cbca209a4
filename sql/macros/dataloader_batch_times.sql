-- How long each batch took: from one call for the next batch to the one after it, in each process.
-- Columns: node, rank, pid, name, previous_ns (start of the call before), ts_ns (start), batch_ns
-- (between them), median_ns (of all batches of the name), is_outlier (at least twice the median).
-- Example: SELECT * FROM dataloader_batch_times('job') WHERE is_outlier;
CREATE OR REPLACE MACRO dataloader_batch_times(run_name) AS TABLE
SELECT
    *,
    median(batch_ns) OVER (PARTITION BY name) AS median_ns,
    batch_ns >= 2 * median(batch_ns) OVER (PARTITION BY name)
    AND batch_ns > median(batch_ns) OVER (PARTITION BY name) AS is_outlier
FROM (
    SELECT
        node, rank, pid, name, LAG(ts_ns) OVER calls AS previous_ns, ts_ns,
        ts_ns - LAG(ts_ns) OVER calls AS batch_ns
    FROM dataloader_calls
    WHERE run = run_name AND activity = 'get_next'
    WINDOW calls AS (
        PARTITION BY node, rank, pid, name, CASE WHEN clock = 'trace' THEN ingest_id END
        ORDER BY ts_ns, ingest_id, seq
    )
)
WHERE batch_ns IS NOT NULL
ORDER BY ts_ns, node, pid;

COMMENT ON MACRO TABLE dataloader_batch_times IS 'Time from one call for a batch to the next, in each process.';
