-- The step of every event of a framework frame: its own number, or that of the step which holds it
-- (strictly): first among the steps of its own process, then among those of its node. Of several
-- the one that started last counts, or else the one that reaches furthest; -1 where none holds it.
-- framework: a frame as PandasFrame gives it, with its ordinal as row_no.
-- Columns: step, in the order of the frame.
WITH marks AS (
    SELECT "nodeID" AS node, pid, framework_metric, step, start_time_us, end_time_us
    FROM framework
    WHERE contains(framework_metric, 'Step:ModeKeys') AND step <> -1
),

-- Of steps that start at once the shortest, and of all that have started the one that ends last.
of_process AS (
    SELECT
        *, MAX(longest) OVER (PARTITION BY node, pid ORDER BY start_us) AS furthest
    FROM (
        SELECT
            node, pid, start_us, MIN({'end_us': end_us, 'step': step}) AS inner_step,
            MAX({'end_us': end_us, 'step': step}) AS longest
        FROM (
            SELECT node, pid, step, MIN(start_time_us) AS start_us, MAX(end_time_us) AS end_us
            FROM marks
            GROUP BY node, pid, framework_metric, step
        )
        GROUP BY node, pid, start_us
    )
),

of_node AS (
    SELECT *, MAX(longest) OVER (PARTITION BY node ORDER BY start_us) AS furthest
    FROM (
        SELECT
            node, start_us, MIN({'end_us': end_us, 'step': step}) AS inner_step,
            MAX({'end_us': end_us, 'step': step}) AS longest
        FROM (
            SELECT node, step, MIN(start_time_us) AS start_us, MAX(end_time_us) AS end_us
            FROM marks
            GROUP BY node, framework_metric, step
        )
        GROUP BY node, start_us
    )
)

SELECT
    CASE
        WHEN f.step <> -1 THEN f.step
        WHEN p.inner_step.end_us > f.end_time_us THEN p.inner_step.step
        WHEN p.furthest.end_us > f.end_time_us THEN p.furthest.step
        WHEN n.inner_step.end_us > f.end_time_us THEN n.inner_step.step
        WHEN n.furthest.end_us > f.end_time_us THEN n.furthest.step
        ELSE -1
    END AS step
FROM framework AS f
ASOF LEFT JOIN of_process AS p
    ON p.node = f."nodeID" AND p.pid = f.pid AND p.start_us < f.start_time_us
ASOF LEFT JOIN of_node AS n
    ON n.node = f."nodeID" AND n.start_us < f.start_time_us
ORDER BY f.row_no
