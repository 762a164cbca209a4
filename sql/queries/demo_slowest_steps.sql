-- The five slowest steps of the sample job: rank, mode and number, duration, and how long each
-- phase took in them, in milliseconds. Of the modules the whole model and the loss are counted.
WITH phases AS (
    SELECT rank, step_mode AS mode, step, process_name AS phase, dur_ns
    FROM step_events('cifar-cnn')
    WHERE
        kind = 'slice' AND category IS NULL
        AND (
            process_name NOT IN ('Forward', 'Backward')
            OR name IN ('DistributedDataParallel', 'CrossEntropyLoss')
        )
)

SELECT
    rank, mode, step,
    round(SUM(dur_ns) FILTER (starts_with(phase, 'Step:')) / 1e6, 2) AS step_ms,
    round(SUM(dur_ns) FILTER (phase = 'DataIterator') / 1e6, 2) AS data_ms,
    round(SUM(dur_ns) FILTER (phase = 'Forward') / 1e6, 2) AS forward_ms,
    round(SUM(dur_ns) FILTER (phase = 'Backward') / 1e6, 2) AS backward_ms,
    round(SUM(dur_ns) FILTER (phase = 'Optimizer') / 1e6, 2) AS optimizer_ms
FROM phases
GROUP BY rank, mode, step
ORDER BY step_ms DESC NULLS LAST
LIMIT 5
