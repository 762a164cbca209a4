-- What ran at these instants: slices that began before and ended after an instant (strictly), by
-- process and name. instants: a list of nanoseconds; one that is given twice counts twice. Both
-- ends of each slice are ranked among the instants, so no pair is ever built.
--
--   slice   |-------------|        hits = instants before its end - instants up to its start
--   instant      x    x   |   x         = 2
--
-- Columns: process_name, name, events (slices that were hit), hits (pairs of a slice and an
-- instant), dur_ns (durations of the slices, once for each hit, in nanoseconds; null where together
-- they are more than 292 years).
-- Example: SELECT * FROM overlap_at('job', (
--              SELECT LIST(ts_ns) FROM metrics WHERE metric = 'GPUUtilization' AND value < 2));
CREATE OR REPLACE MACRO overlap_at(run_name, instants, clock_name := 'epoch') AS TABLE
WITH given AS (
    SELECT t_ns, SUM(COUNT(*)) OVER (ORDER BY t_ns)::BIGINT AS so_far
    FROM (SELECT UNNEST(instants)::BIGINT AS t_ns)
    WHERE t_ns IS NOT NULL
    GROUP BY t_ns
),

-- Ranking sorts the slices, and most lie between two instants. Of the short ones, no longer than a
-- bucket, only those can hold an instant that start in its bucket or in the one before.
buckets AS (
    SELECT GREATEST((MAX(t_ns)::HUGEINT - MIN(t_ns)) // (16 * COUNT(*)), 1)::BIGINT AS width_ns
    FROM given
),

near AS (
    SELECT DISTINCT t_ns // width_ns - UNNEST([0, 1]) AS bucket
    FROM given, buckets
),

hours AS (
    FROM _hours_of(run_name, (SELECT [MIN(t_ns), MAX(t_ns)] FROM given), clock_name)
),

slices AS (
    SELECT process_name, name, ts_ns, end_ns, dur_ns
    FROM events
    WHERE
        run = run_name AND clock = clock_name AND kind = 'slice'
        AND end_ns > (SELECT MIN(t_ns) FROM given) AND ts_ns < (SELECT MAX(t_ns) FROM given)
        AND hour >= (SELECT first_hour FROM hours) AND hour <= (SELECT last_hour FROM hours)
        AND (
            dur_ns > (SELECT width_ns FROM buckets)
            OR ts_ns // (SELECT width_ns FROM buckets) IN (SELECT bucket FROM near)
        )
),

-- Those that hold none are left out before the second rank is looked for.
ending AS (
    SELECT s.*, g.so_far AS before_end
    FROM slices AS s
    ASOF INNER JOIN given AS g ON g.t_ns < s.end_ns
    WHERE g.t_ns > s.ts_ns
),

hit AS (
    SELECT
        e.process_name, e.name, e.dur_ns, e.before_end - COALESCE(g.so_far, 0) AS hits
    FROM ending AS e
    ASOF LEFT JOIN given AS g ON g.t_ns <= e.ts_ns
)

SELECT
    process_name, name, COUNT(*) AS events, SUM(hits)::BIGINT AS hits,
    TRY_CAST(SUM(hits::HUGEINT * dur_ns) AS BIGINT) AS dur_ns
FROM hit
GROUP BY process_name, name
ORDER BY dur_ns DESC NULLS FIRST, process_name, name;

COMMENT ON MACRO TABLE overlap_at IS 'Slices that were under way at given instants, by process and name.';
