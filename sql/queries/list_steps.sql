-- The steps of one run by start; columns as in the view steps. $run: its name; $mode: only theirs,
-- null for all.
SELECT *
FROM steps
WHERE run = $run AND ($mode IS NULL OR mode = $mode)
ORDER BY start_ns, node, rank, mode, step
