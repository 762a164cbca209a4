-- The interval from one step to just before another where both are there: start_ns, end_ns, null
-- for one that is not. As in step_interval, but reads only what has the two numbers.
-- $run: its name; $first, $until: the steps; $mode: theirs, or null;
-- $clock: epoch or trace.
SELECT
    MIN(start_ns) FILTER (step = $first) AS start_ns,
    MIN(start_ns) FILTER (step = $until) - 1 AS end_ns
FROM (
    SELECT
        *,
        BOOL_AND(_is_profilers(mode)) FILTER (step = $first) OVER () AS is_of_profilers
    FROM steps
    WHERE
        run = $run AND clock = $clock AND step IN ($first, $until)
        AND ($mode IS NULL OR mode = $mode)
)
WHERE $mode IS NOT NULL OR _is_profilers(mode) = is_of_profilers
