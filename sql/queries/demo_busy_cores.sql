-- Mean utilisation of each core of the sample job in percent, for samples inside a step of rank 0
-- and outside all of them: an as-of join of each sample with the last step that began before it.
WITH steps AS (
    SELECT ts_ns, end_ns
    FROM events
    WHERE run = 'cifar-cnn' AND rank = 0 AND starts_with(process_name, 'Step:')
),

samples AS (
    SELECT ts_ns, device, value
    FROM metrics
    WHERE run = 'cifar-cnn' AND metric = 'CPUUtilization'
)

SELECT
    device,
    round(AVG(value) FILTER (steps.end_ns >= samples.ts_ns), 1) AS in_steps_pct,
    round(AVG(value) FILTER (
        steps.end_ns IS NULL OR steps.end_ns < samples.ts_ns
    ), 1) AS outside_pct,
    COUNT(*) AS samples
FROM samples
ASOF LEFT JOIN steps ON steps.ts_ns <= samples.ts_ns
GROUP BY device
ORDER BY device
