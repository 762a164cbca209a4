-- The interval of a range of steps of a run: lowest, highest (numbers of the steps that there are),
-- has_first (whether there is the first step), start_ns, end_ns (null where the range has none, or
-- its end does not start after it), modes (all that there are, null for none).
-- $run: its name; $first: null for the step that starts first; $until: null for the end; $mode: of
-- the steps, or null as in step_interval; $clock: epoch or trace.
WITH s AS (
    SELECT mode, step, start_ns FROM steps WHERE run = $run AND clock = $clock
),

own AS (
    SELECT
        COALESCE(
            MIN(step) FILTER ($mode IS NOT NULL OR NOT _is_profilers(mode)), MIN(step)
        ) AS lowest,
        MAX(step) AS highest,
        COALESCE(BOOL_OR(step = $first), MAX(step) IS NOT NULL) AS has_first
    FROM s
    WHERE $mode IS NULL OR mode = $mode
)

SELECT own.lowest, own.highest, own.has_first, i.start_ns, i.end_ns,
    (SELECT LIST(DISTINCT mode ORDER BY mode) FROM s) AS modes
FROM own
LEFT JOIN (
    FROM step_interval($run, COALESCE($first, (SELECT lowest FROM own)), $until, of_mode := $mode)
    WHERE clock = $clock
) AS i ON TRUE
