-- How the time of a job divides: initialization (from the first event or sample to the first
-- step), training_loop (from the first start to the last end of a step), between (the part of the
-- loop in which no machine was in a step), finalization (from then to the last event or sample).
-- No rows where there are no steps.
-- Columns: phase, start_ns, end_ns (null for between, which is in pieces), dur_ns, share (of the
-- time of the job, 0 to 1; null where that is nothing).
-- Example: SELECT phase, dur_ns / 1e9 AS s, share FROM job_phases('job');
CREATE OR REPLACE MACRO job_phases(run_name, clock_name := 'epoch') AS TABLE
WITH s AS (
    SELECT start_ns, until_ns AS end_ns
    FROM _step_spans(run_name)
    WHERE clock = clock_name
),

loop AS (
    SELECT MIN(start_ns) AS start_ns, MAX(end_ns) AS end_ns
    FROM s
    HAVING COUNT(*) > 0
),

job AS (
    SELECT MIN(first_ns) AS start_ns, MAX(last_ns) AS end_ns
    FROM _live_sources
    WHERE run = run_name AND clock = clock_name
),

gaps AS (
    SELECT COALESCE(SUM(GREATEST(start_ns - reached_ns, 0)), 0)::BIGINT AS dur_ns
    FROM (
        SELECT
            start_ns,
            MAX(end_ns) OVER (
                ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reached_ns
        FROM s
    )
),

phases AS (
    SELECT 1 AS place, 'initialization' AS phase, job.start_ns, loop.start_ns AS end_ns,
        loop.start_ns - job.start_ns AS dur_ns
    FROM job, loop
    UNION ALL
    SELECT 2, 'training_loop', start_ns, end_ns, end_ns - start_ns FROM loop
    UNION ALL
    SELECT 3, 'between', NULL, NULL, gaps.dur_ns FROM gaps, loop
    UNION ALL
    SELECT 4, 'finalization', loop.end_ns, job.end_ns, job.end_ns - loop.end_ns FROM job, loop
)

SELECT phase, start_ns, end_ns, dur_ns, dur_ns / NULLIF(job_ns, 0) AS share
FROM phases, (SELECT end_ns - start_ns AS job_ns FROM job)
ORDER BY place;

COMMENT ON MACRO TABLE job_phases IS 'Initialization, training loop, time between steps and finalization of a job.';
