-- How busy resources were, from a system frame: statistics of the values of all metrics of a
-- resource, by node and, where $by_phase is true, by the training phase that holds the sample. Of
-- several the one that started last counts; samples in none are left out then.
-- system: a frame as PandasFrame gives it, with its ordinal as row_no; phases: as frame_phases.sql
-- gives them; $resources: words in the type of a metric, in the order of the answer.
-- Columns: Resource, Training_phase, nodeID, then utilization_mean, _min, _max, _p50, _p95, _p99.
WITH phased AS (
    SELECT s.row_no, ARG_MAX(p.phase, p.start_time_us) AS phase
    FROM system AS s
    INNER JOIN phases AS p
        ON s.timestamp_us >= p.start_time_us AND s.timestamp_us <= p.end_time_us
    WHERE $by_phase
    GROUP BY s.row_no
),

asked AS (
    SELECT UNNEST($resources) AS resource, UNNEST(range(len($resources))) AS place
)

SELECT
    a.resource AS "Resource", p.phase AS "Training_phase", s."nodeID",
    AVG(s.value) AS utilization_mean, MIN(s.value) AS utilization_min,
    MAX(s.value) AS utilization_max, quantile_cont(s.value, 0.5) AS utilization_p50,
    quantile_cont(s.value, 0.95) AS utilization_p95, quantile_cont(s.value, 0.99) AS utilization_p99
FROM system AS s
INNER JOIN asked AS a ON contains(s.type, a.resource)
LEFT JOIN phased AS p ON p.row_no = s.row_no
WHERE p.phase IS NOT NULL OR NOT $by_phase
GROUP BY a.place, a.resource, p.phase, s."nodeID"
ORDER BY a.place, p.phase, s."nodeID"
