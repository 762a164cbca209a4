-- The interval of a range of steps of a run: lowest, highest (numbers of the steps that there are),
-- start_ns, end_ns (null where the range has none). $run: its name; $first: null for the step that
-- starts first; $until: null for the end; $clock: epoch or trace.
WITH s AS (
    SELECT step, start_ns FROM steps WHERE run = $run AND clock = $clock
)

SELECT MIN(s.step) AS lowest, MAX(s.step) AS highest,
    ANY_VALUE(i.start_ns) AS start_ns, ANY_VALUE(i.end_ns) AS end_ns
FROM s
LEFT JOIN (
    FROM step_interval($run, COALESCE($first, (SELECT MIN(step) FROM s)), $until)
    WHERE clock = $clock
) AS i ON TRUE
