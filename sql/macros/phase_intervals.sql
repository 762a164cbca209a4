-- The training phases of each node in turn: steps of one mode in a row make one interval, with what
-- lies before, between and after them. Where steps of several modes are under way at once, it is
-- the phase of the one that started last, and where that is over of the one that reaches furthest.
-- The steps of profilers (ProfilerStep, device) count where a node has no others: they are the same
-- ones seen again. No two intervals of a node overlap; one without length is left out.
--
--   Before TRAIN | TRAIN | Between EVAL and TRAIN | EVAL | After EVAL
--
-- Columns: node, phase, start_ns, end_ns (both included, nanoseconds).
-- Example: SELECT phase, SUM(end_ns - start_ns) / 1e9 AS s FROM phase_intervals('job')
--          GROUP BY phase;
CREATE OR REPLACE MACRO phase_intervals(run_name, clock_name := 'epoch') AS TABLE
WITH own AS (
    SELECT node, mode, start_ns, until_ns AS end_ns
    FROM _step_spans(run_name)
    WHERE clock = clock_name
    QUALIFY
        NOT _is_profilers(mode) OR BOOL_AND(_is_profilers(mode)) OVER (PARTITION BY node)
),

-- Of steps that start at once the shortest, and of all that have started the one that ends last.
starts AS (
    SELECT *, MAX(longest) OVER (PARTITION BY node ORDER BY start_ns) AS furthest
    FROM (
        SELECT
            node, start_ns,
            MIN({'end_ns': end_ns, 'mode': mode}) AS latest,
            MAX({'end_ns': end_ns, 'mode': mode}) AS longest
        FROM own
        GROUP BY node, start_ns
    )
),

pieces AS (
    SELECT
        node, at_ns AS start_ns,
        LEAD(at_ns) OVER (PARTITION BY node ORDER BY at_ns) - 1 AS end_ns
    FROM (
        SELECT node, start_ns AS at_ns FROM own
        UNION
        SELECT node, end_ns + 1 FROM own
    )
),

held AS (
    SELECT
        p.node, p.start_ns, p.end_ns,
        CASE
            WHEN s.latest.end_ns >= p.start_ns THEN s.latest.mode
            WHEN s.furthest.end_ns >= p.start_ns THEN s.furthest.mode
        END AS mode
    FROM pieces AS p
    ASOF INNER JOIN starts AS s ON s.node = p.node AND s.start_ns <= p.start_ns
),

turns AS (
    SELECT *, SUM(is_new) OVER (PARTITION BY node ORDER BY start_ns) AS turn
    FROM (
        SELECT
            *,
            COALESCE(mode <> LAG(mode) OVER (PARTITION BY node ORDER BY start_ns), TRUE)::BIGINT
                AS is_new
        FROM held
        WHERE mode IS NOT NULL
    )
),

islands AS (
    SELECT node, mode, MIN(start_ns) AS start_ns, MAX(end_ns) AS end_ns
    FROM turns
    GROUP BY node, mode, turn
),

linked AS (
    SELECT
        *,
        LAG(end_ns) OVER in_turn AS reached_ns,
        LAG(mode) OVER in_turn AS mode_before,
        LEAD(mode) OVER in_turn AS mode_after
    FROM islands
    WINDOW in_turn AS (PARTITION BY node ORDER BY start_ns)
),

job AS (
    SELECT MIN(first_ns) AS start_ns, MAX(last_ns) AS end_ns
    FROM _live_sources
    WHERE run = run_name AND clock = clock_name
),

all_intervals AS (
    SELECT node, mode AS phase, start_ns, end_ns FROM linked
    UNION ALL
    SELECT
        node,
        concat('Between ', LEAST(mode_before, mode), ' and ', GREATEST(mode_before, mode)),
        reached_ns + 1, start_ns - 1
    FROM linked
    WHERE mode_before IS NOT NULL
    UNION ALL
    SELECT l.node, concat('Before ', l.mode), job.start_ns, l.start_ns - 1
    FROM linked AS l, job
    WHERE l.mode_before IS NULL
    UNION ALL
    SELECT l.node, concat('After ', l.mode), l.end_ns + 1, job.end_ns
    FROM linked AS l, job
    WHERE l.mode_after IS NULL
)

SELECT node, phase, start_ns, end_ns
FROM all_intervals
WHERE start_ns <= end_ns
ORDER BY node, start_ns;

COMMENT ON MACRO TABLE phase_intervals IS 'Training phases of each node in turn, with what lies before, between and after.';
