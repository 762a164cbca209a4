-- How busy each resource was: statistics of every metric in percent, by node and, where by_phase
-- is true, by training phase (that of phase_intervals which holds the sample).
-- Columns: resource, node, metric, phase (null unless by_phase), samples, mean, min, max, p50, p95,
-- p99 (percent).
-- Example: SELECT * FROM utilization('job', by_phase := TRUE) WHERE resource = 'gpu';
CREATE OR REPLACE MACRO utilization(run_name, by_phase := FALSE, clock_name := 'epoch') AS TABLE
WITH samples AS (
    SELECT resource, node, metric, ts_ns, value
    FROM metrics
    WHERE run = run_name AND clock = clock_name AND unit = 'percent' AND value IS NOT NULL
),

phased AS (
    SELECT
        s.resource, s.node, s.metric, s.value,
        CASE WHEN s.ts_ns <= p.end_ns THEN p.phase END AS phase
    FROM samples AS s
    ASOF LEFT JOIN (SELECT * FROM phase_intervals(run_name, clock_name := clock_name)) AS p
        ON p.node = s.node AND p.start_ns <= s.ts_ns
    WHERE by_phase
    UNION ALL
    SELECT resource, node, metric, value, NULL FROM samples WHERE NOT by_phase
)

SELECT
    resource, node, metric, phase, COUNT(*) AS samples, AVG(value) AS mean, MIN(value) AS min,
    MAX(value) AS max, quantile_cont(value, 0.5) AS p50, quantile_cont(value, 0.95) AS p95,
    quantile_cont(value, 0.99) AS p99
FROM phased
GROUP BY resource, node, metric, phase
ORDER BY resource, node, metric, phase;

COMMENT ON MACRO TABLE utilization IS 'Statistics of utilisation by resource, node, metric and training phase, in percent.';
