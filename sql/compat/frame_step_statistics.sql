-- How long steps take, from a framework frame: for each name, the time in each step from its first
-- start to its last end, on whichever node. Events in no step do not count.
-- framework: a frame as PandasFrame gives it; $by: training_phase (the step itself by its mode),
-- framework_metric or process.
-- Columns: name, then duration_mean_us, _min_us, _max_us, _p50_us, _p95_us, _p99_us (interpolated).
WITH spans AS (
    SELECT
        CASE $by WHEN 'process' THEN process ELSE framework_metric END AS name,
        MAX(end_time_us) - MIN(start_time_us) AS dur_us
    FROM framework
    WHERE step <> -1 AND ($by <> 'training_phase' OR contains(framework_metric, 'Step:ModeKeys'))
    GROUP BY name, step
)

SELECT
    name, AVG(dur_us) AS duration_mean_us, MIN(dur_us)::DOUBLE AS duration_min_us,
    MAX(dur_us)::DOUBLE AS duration_max_us, quantile_cont(dur_us, 0.5) AS duration_p50_us,
    quantile_cont(dur_us, 0.95) AS duration_p95_us, quantile_cont(dur_us, 0.99) AS duration_p99_us
FROM spans
GROUP BY name
ORDER BY name
