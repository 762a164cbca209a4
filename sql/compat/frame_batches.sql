-- How long each batch took: from one call for the next batch to the one after it, in each process.
-- calls: a frame as PandasFrame.get_all_dataloader_metrics gives it; times as texts or datetimes.
-- Columns: previous_batch_start, start_time (times), BatchTime_in_seconds, worker_id,
-- start_time_us, is_outlier (at least twice the median of all batches); the longest first.
SELECT
    *,
    "BatchTime_in_seconds" >= 2 * median("BatchTime_in_seconds") OVER ()
    AND "BatchTime_in_seconds" > median("BatchTime_in_seconds") OVER () AS is_outlier
FROM (
    SELECT
        LAG(started) OVER in_process AS previous_batch_start,
        started AS start_time,
        (start_time_us - LAG(start_time_us) OVER in_process) / 1e6 AS "BatchTime_in_seconds",
        worker_id, start_time_us
    FROM (
        SELECT
            *,
            COALESCE(
                TRY_CAST(start_time AS TIMESTAMP),
                TRY_STRPTIME(start_time::VARCHAR, '%Y-%m-%dT%H:%M:%S:%f')
            ) AS started
        FROM calls
    )
    WINDOW in_process AS (PARTITION BY node_id, pid ORDER BY start_time_us, end_time_us)
)
WHERE "BatchTime_in_seconds" IS NOT NULL
ORDER BY "BatchTime_in_seconds" DESC, start_time_us
