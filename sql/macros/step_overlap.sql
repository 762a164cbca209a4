-- What ran during steps, from first_step up to, but without, until_step (null for no bound)? Each
-- step counts for the slices of its own node and rank. Steps that never ended count for nothing.
-- of_mode: only steps of this mode; null for all but those of profilers (ProfilerStep, device),
-- which count where there are no others.
-- Columns as in overlap_during.
-- Example: SELECT * FROM step_overlap('job', 10, 12);
CREATE OR REPLACE MACRO step_overlap(
    run_name, first_step, until_step, clock_name := 'epoch', of_mode := NULL
) AS TABLE
WITH chosen AS (
    SELECT
        *,
        BOOL_AND(_is_profilers(mode)) OVER () AS is_of_profilers
    FROM steps
    WHERE
        run = run_name AND clock = clock_name AND complete
        AND (of_mode IS NULL OR mode = of_mode)
        AND COALESCE(step >= first_step, TRUE) AND COALESCE(step < until_step, TRUE)
),

points AS MATERIALIZED (
    FROM _interval_points((
        SELECT LIST({
            track: concat(rank, ' ', node), start_ns: start_ns, end_ns: end_ns
        })
        FROM chosen
        WHERE of_mode IS NOT NULL OR _is_profilers(mode) = is_of_profilers
    ))
),

hours AS (
    FROM _hours_of(run_name, (SELECT [MIN(t_ns), MAX(t_ns)] FROM points), clock_name)
),

slices AS (
    SELECT concat(rank, ' ', node) AS track, process_name, name, ts_ns, end_ns
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
    SELECT n.place, s.track, s.ts_ns, s.end_ns
    FROM slices AS s
    INNER JOIN named AS n
        ON
            n.name IS NOT DISTINCT FROM s.name
            AND n.process_name IS NOT DISTINCT FROM s.process_name
),

ended AS (
    SELECT
        s.place, s.track, s.ts_ns, s.end_ns - s.ts_ns AS dur_ns, at_end.begun,
        _lasted_at(s.end_ns, at_end) AS lasted_ns
    FROM numbered AS s
    ASOF INNER JOIN points AS at_end ON at_end.track = s.track AND at_end.t_ns <= s.end_ns
),

met AS (
    SELECT
        e.place, e.dur_ns, e.begun - COALESCE(before.ended, 0) AS pairs,
        e.lasted_ns - _lasted_at(e.ts_ns, before) AS overlap_ns
    FROM ended AS e
    ASOF LEFT JOIN points AS before ON before.track = e.track AND before.t_ns < e.ts_ns
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

COMMENT ON MACRO TABLE step_overlap IS 'Slices that were under way during a range of steps, by process and name.';
