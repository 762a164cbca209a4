-- Slices against intervals, by process and name: overlap_during and step_overlap say what it
-- answers. intervals: a list of {node, rank, start_ns, end_ns}; by_track: whether an interval
-- counts for the slices of its node and rank only. Reversed intervals count for nothing.
-- The ends of the intervals are the points of a line on which each keeps, of all before it, how
-- many have begun and ended, and how long all have lasted together. Both ends of a slice are
-- looked up there:
--
--   slice          |-----------------|       pairs   = begun at its end - ended before its start
--   intervals   |-----|   |--|    |----|             = 3 - 0
--   overlap         ==    ==      ==         overlap = lasted at its end - lasted at its start
CREATE OR REPLACE MACRO _overlap(run_name, intervals, by_track, clock_name) AS TABLE
WITH given AS (
    SELECT
        CASE WHEN by_track THEN concat(COALESCE(i.rank, -1), ' ', i.node) ELSE '' END AS track,
        i.start_ns::BIGINT AS start_ns, i.end_ns::BIGINT AS end_ns
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
        LEAD(t_ns) OVER line - t_ns AS gap_ns
    FROM changes
    WINDOW line AS (PARTITION BY track ORDER BY t_ns)
),

points AS (
    SELECT
        track, t_ns, begun, ended,
        COALESCE(SUM((begun - ended) * gap_ns) OVER (
            PARTITION BY track ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0)::BIGINT AS lasted_ns
    FROM counted
),

slices AS (
    SELECT
        process_name, name, ts_ns, end_ns, dur_ns,
        CASE WHEN by_track THEN concat(COALESCE(rank, -1), ' ', node) ELSE '' END AS track
    FROM events
    WHERE
        run = run_name AND clock = clock_name AND kind = 'slice'
        AND end_ns >= (SELECT MIN(start_ns) FROM given)
        AND ts_ns <= (SELECT MAX(end_ns) FROM given)
),

met AS (
    SELECT
        s.process_name, s.name, s.dur_ns,
        at_end.begun - COALESCE(before.ended, 0) AS pairs,
        at_end.lasted_ns + (s.end_ns - at_end.t_ns) * (at_end.begun - at_end.ended)
        - COALESCE(
            before.lasted_ns + (s.ts_ns - before.t_ns) * (before.begun - before.ended), 0
        ) AS overlap_ns
    FROM slices AS s
    ASOF INNER JOIN points AS at_end ON at_end.track = s.track AND at_end.t_ns <= s.end_ns
    ASOF LEFT JOIN points AS before ON before.track = s.track AND before.t_ns < s.ts_ns
)

SELECT
    process_name, name, COUNT(*) AS events, SUM(pairs)::BIGINT AS pairs,
    SUM(pairs::HUGEINT * dur_ns)::BIGINT AS dur_ns, SUM(overlap_ns)::BIGINT AS overlap_ns
FROM met
WHERE pairs > 0
GROUP BY process_name, name
ORDER BY overlap_ns DESC, dur_ns DESC, process_name, name;
