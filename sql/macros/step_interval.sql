-- Which interval is step a up to, but without, step b: from the first start of a to the
-- nanosecond before the first start of b, on whichever node and in whichever mode each comes
-- first. No row where either step is not there, or b does not start after a.
-- Columns: clock, ingest_id (the file, for clock trace), start_ns, end_ns (both included).
-- Example: SELECT * FROM step_interval('job', 2, 4);
CREATE OR REPLACE MACRO step_interval(run_name, first_step, until_step) AS TABLE
SELECT
    clock, ingest_id,
    MIN(start_ns) FILTER (step = first_step) AS start_ns,
    MIN(start_ns) FILTER (step = until_step) - 1 AS end_ns
FROM steps
WHERE run = run_name AND step IN (first_step, until_step)
GROUP BY clock, ingest_id
HAVING
    MIN(start_ns) FILTER (step = first_step) < MIN(start_ns) FILTER (step = until_step);

COMMENT ON MACRO TABLE step_interval IS 'The interval from the start of one step to just before the start of another.';
