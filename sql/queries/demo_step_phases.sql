-- What share of the steps of the sample job each phase takes, in percent, with its median in
-- milliseconds. Of the modules the whole model and the loss are counted.
WITH phases AS (
    SELECT process_name AS phase, dur_ns
    FROM events
    WHERE
        run = 'cifar-cnn' AND kind = 'slice' AND category IS NULL
        AND (
            process_name NOT IN ('Forward', 'Backward')
            OR name IN ('DistributedDataParallel', 'CrossEntropyLoss')
        )
)

SELECT
    phase,
    COUNT(*) AS slices,
    round(median(dur_ns) / 1e6, 2) AS median_ms,
    round(100 * SUM(dur_ns) / (
        SELECT SUM(dur_ns) FROM phases WHERE starts_with(phase, 'Step:')
    ), 1) AS pct_of_steps
FROM phases
GROUP BY phase
ORDER BY pct_of_steps DESC
