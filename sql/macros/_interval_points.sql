-- The ends of intervals as points of a line, on which each keeps, of all before it, how many
-- intervals have begun and ended, and how long all have lasted together. intervals: a list of
-- {track, start_ns, end_ns}; each track has a line of its own. Reversed intervals count for
-- nothing.
-- overlap_during and step_overlap look up both ends of a slice there:
--
--   slice          |-----------------|       pairs   = begun at its end - ended before its start
--   intervals   |-----|   |--|    |----|             = 3 - 0
--   overlap         ==    ==      ==         overlap = lasted at its end - lasted at its start
--
-- Columns: track, t_ns, begun, ended, lasted_ns (a HUGEINT: many together last more than the 292
-- years of a BIGINT).
CREATE OR REPLACE MACRO _interval_points(intervals) AS TABLE
WITH given AS (
    SELECT i.track AS track, i.start_ns::BIGINT AS start_ns, i.end_ns::BIGINT AS end_ns
    FROM (SELECT UNNEST(intervals) AS i)
    WHERE i.start_ns <= i.end_ns
),

changes AS (
    SELECT track, t_ns, SUM(begun) AS begun, SUM(ended) AS ended
    FROM (
        SELECT track, start_ns AS t_ns, 1 AS begun, 0 AS ended FROM given
        UNION ALL
        SELECT track, end_ns, 0, 1 FROM given
    )
    GROUP BY track, t_ns
),

counted AS (
    SELECT
        track, t_ns,
        (SUM(begun) OVER line)::BIGINT AS begun,
        (SUM(ended) OVER line)::BIGINT AS ended,
        (LEAD(t_ns) OVER line)::HUGEINT - t_ns AS gap_ns
    FROM changes
    WINDOW line AS (PARTITION BY track ORDER BY t_ns)
)

SELECT
    track, t_ns, begun, ended,
    COALESCE(SUM((begun - ended) * gap_ns) OVER (
        PARTITION BY track ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS lasted_ns
FROM counted;
