-- The step of every event of a framework frame: its own number, or that of the step which holds it
-- (strictly): first among the steps of its own process, then among those of its node. Of several
-- the one that started last counts; -1 where it does not hold the event.
-- framework: a frame as PandasFrame gives it, with its ordinal as row_no.
-- Columns: step, in the order of the frame.
WITH marks AS (
    SELECT "nodeID" AS node, pid, framework_metric, step, start_time_us, end_time_us
    FROM framework
    WHERE contains(framework_metric, 'Step:ModeKeys') AND step <> -1
),

of_process AS (
    SELECT node, pid, step, MIN(start_time_us) AS start_us, MAX(end_time_us) AS end_us
    FROM marks
    GROUP BY node, pid, framework_metric, step
),

of_node AS (
    SELECT node, step, MIN(start_time_us) AS start_us, MAX(end_time_us) AS end_us
    FROM marks
    GROUP BY node, framework_metric, step
)

SELECT
    CASE
        WHEN f.step <> -1 THEN f.step
        WHEN p.end_us > f.end_time_us THEN p.step
        WHEN n.end_us > f.end_time_us THEN n.step
        ELSE -1
    END AS step
FROM framework AS f
ASOF LEFT JOIN of_process AS p
    ON p.node = f."nodeID" AND p.pid = f.pid AND p.start_us < f.start_time_us
ASOF LEFT JOIN of_node AS n
    ON n.node = f."nodeID" AND n.start_us < f.start_time_us
ORDER BY f.row_no
