-- Which interval is step a up to, but without, step b? From the first start of a to the
-- nanosecond before the first start of b, on whichever node and in whichever mode each comes first.
-- Where there is no step b, the next higher number stands for it; where there is none, or b is
-- null, the interval goes to the last end of the steps from a on (of one that never ended, to the
-- end of the data). No row where there is no step a, or b does not start after it. of_mode: only
-- steps of this mode; null for all but those of profilers (ProfilerStep, device), which count where
-- nothing else has a step a: they have numbers of their own.
--
--   |--a--| |-----| |--b--|
--   ===============                 the interval
--
-- Columns: clock, ingest_id (the file, for clock trace), start_ns, end_ns (both included).
-- Example: SELECT * FROM step_interval('job', 2, 4);
CREATE OR REPLACE MACRO step_interval(
    run_name, first_step, until_step, of_mode := NULL
) AS TABLE
WITH s AS (
    SELECT
        clock, ingest_id, step, start_ns, until_ns AS end_ns,
        MIN(step) FILTER (step >= until_step) OVER (PARTITION BY clock, ingest_id) AS next_step
    FROM (
        SELECT
            *,
            BOOL_AND(_is_profilers(mode)) FILTER (step = first_step)
                OVER (PARTITION BY clock, ingest_id) AS is_of_profilers
        FROM _step_spans(run_name)
        WHERE of_mode IS NULL OR mode = of_mode
    )
    WHERE of_mode IS NOT NULL OR _is_profilers(mode) = is_of_profilers
),

found AS (
    SELECT
        clock, ingest_id,
        MIN(start_ns) FILTER (step = first_step) AS start_ns,
        COALESCE(
            MIN(start_ns) FILTER (step = next_step) - 1,
            MAX(end_ns) FILTER (step >= first_step AND COALESCE(step < until_step, TRUE))
        ) AS end_ns
    FROM s
    GROUP BY clock, ingest_id
)

SELECT *
FROM found
WHERE COALESCE(first_step < until_step, TRUE) AND start_ns <= end_ns;

COMMENT ON MACRO TABLE step_interval IS 'The interval from the start of one step to just before the start of another.';
