-- The five slowest steps of the sample job: mode, duration, and how long each phase took in them,
-- in milliseconds.
WITH phases AS (
    SELECT step, process_name AS phase, dur_ns
    FROM events
    WHERE run = 'cifar-cnn' AND kind = 'slice' AND step IS NOT NULL AND category IS NULL
)

SELECT
    step,
    MAX(phase) FILTER (starts_with(phase, 'Step:')) AS mode,
    round(SUM(dur_ns) FILTER (starts_with(phase, 'Step:')) / 1e6, 2) AS step_ms,
    round(SUM(dur_ns) FILTER (phase = 'DataIterator') / 1e6, 2) AS data_ms,
    round(SUM(dur_ns) FILTER (phase = 'Forward') / 1e6, 2) AS forward_ms,
    round(SUM(dur_ns) FILTER (phase = 'Backward') / 1e6, 2) AS backward_ms,
    round(SUM(dur_ns) FILTER (phase = 'Optimizer') / 1e6, 2) AS optimizer_ms
FROM phases
GROUP BY step
ORDER BY step_ms DESC
LIMIT 5
