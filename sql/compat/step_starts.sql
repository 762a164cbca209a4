-- When two steps start, as smdebug's readers have it: with the first finished slice, of whichever
-- name, that carries the number. Python timelines say so, other files where these do not.
-- $run: its name; $first, $until: the numbers; $clock: epoch or trace.
-- Columns: first_ns, until_ns; null where no event carries the number.
WITH numbered AS (
    SELECT e.step, e.ts_ns, contains(s.uri, 'pythontimeline.json') AS is_python
    FROM events AS e
    INNER JOIN sources AS s ON s.ingest_id = e.ingest_id
    WHERE
        e.run = $run AND e.clock = $clock AND e.kind = 'slice' AND e.dur_ns IS NOT NULL
        AND e.step IN ($first, $until)
)

SELECT
    COALESCE(
        MIN(ts_ns) FILTER (is_python AND step = $first), MIN(ts_ns) FILTER (step = $first)
    ) AS first_ns,
    COALESCE(
        MIN(ts_ns) FILTER (is_python AND step = $until), MIN(ts_ns) FILTER (step = $until)
    ) AS until_ns
FROM numbered
