-- What ran during these intervals? Slices that share an instant with an interval, ends included,
-- by process and name. intervals: a list of {start_ns, end_ns}; they may overlap and repeat.
-- Columns: process_name, name, events (slices that met an interval), pairs (of a slice and an
-- interval), dur_ns (whole durations of the slices, once for each pair), overlap_ns (the time that
-- slice and interval share, over all pairs), both in nanoseconds, and null for what is more than
-- 292 years together.
-- Example: SELECT * FROM overlap_during('job', [{start_ns: 1596668225000000000,
--                                                end_ns: 1596668226000000000}]);
CREATE OR REPLACE MACRO overlap_during(run_name, intervals, clock_name := 'epoch') AS TABLE
WITH points AS MATERIALIZED (
    FROM _interval_points(list_transform(intervals, lambda i: {
        track: 0, start_ns: i.start_ns, end_ns: i.end_ns
    }))
),

hours AS (
    FROM _hours_of(run_name, (SELECT [MIN(t_ns), MAX(t_ns)] FROM points), clock_name)
),

slices AS (
    SELECT process_name, name, ts_ns, end_ns
    FROM events
    WHERE
        run = run_name AND clock = clock_name AND kind = 'slice'
        AND end_ns >= (SELECT MIN(t_ns) FROM points)
        AND ts_ns <= (SELECT MAX(t_ns) FROM points)
        AND hour >= (SELECT first_hour FROM hours) AND hour <= (SELECT last_hour FROM hours)
),

-- A lookup sorts all that it carries, so slices carry the number of their names through both, and
-- from the first only what was worked out there.
named AS MATERIALIZED (
    SELECT (ROW_NUMBER() OVER ())::INTEGER AS place, process_name, name
    FROM (SELECT DISTINCT process_name, name FROM slices)
),

numbered AS (
    SELECT n.place, s.ts_ns, s.end_ns
    FROM slices AS s
    INNER JOIN named AS n
        ON
            n.name IS NOT DISTINCT FROM s.name
            AND n.process_name IS NOT DISTINCT FROM s.process_name
),

ended AS (
    SELECT
        s.place, s.ts_ns, s.end_ns - s.ts_ns AS dur_ns, at_end.begun,
        _lasted_at(s.end_ns, at_end) AS lasted_ns
    FROM numbered AS s
    ASOF INNER JOIN points AS at_end ON at_end.t_ns <= s.end_ns
),

met AS (
    SELECT
        e.place, e.dur_ns, e.begun - COALESCE(before.ended, 0) AS pairs,
        e.lasted_ns - _lasted_at(e.ts_ns, before) AS overlap_ns
    FROM ended AS e
    ASOF LEFT JOIN points AS before ON before.t_ns < e.ts_ns
),

summed AS (
    SELECT
        place, COUNT(*) AS events, SUM(pairs)::BIGINT AS pairs,
        TRY_CAST(SUM(pairs::HUGEINT * dur_ns) AS BIGINT) AS dur_ns,
        TRY_CAST(SUM(overlap_ns) AS BIGINT) AS overlap_ns
    FROM met
    WHERE pairs > 0
    GROUP BY place
)

SELECT process_name, name, events, pairs, dur_ns, overlap_ns
FROM summed
INNER JOIN named USING (place)
ORDER BY overlap_ns DESC NULLS FIRST, dur_ns DESC NULLS FIRST, process_name, name;

COMMENT ON MACRO TABLE overlap_during IS 'Slices that were under way during given intervals, by process and name.';
