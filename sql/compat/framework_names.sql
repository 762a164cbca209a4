-- The names that framework events of a run have: their own, and those of their processes, as they
-- are chosen by. $run: its name; $clock: epoch or trace.
-- Columns: name.
WITH named AS (
    SELECT DISTINCT name, COALESCE(process_name, 'Unknown') AS process
    FROM events
    WHERE run = $run AND clock = $clock AND kind = 'slice' AND dur_ns IS NOT NULL
)

SELECT name FROM named WHERE name IS NOT NULL
UNION
SELECT process FROM named
