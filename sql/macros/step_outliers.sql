-- Which steps took at least factor times as long as the median of their node, rank and mode?
-- of_mode: only steps of this mode; null for all.
-- Columns: node, rank, mode, step, start_ns, dur_ns, median_ns (nanoseconds), ratio (dur / median);
-- the worst come first.
-- Example: SELECT * FROM step_outliers('job', factor := 3);
CREATE OR REPLACE MACRO step_outliers(run_name, factor := 2, of_mode := NULL) AS TABLE
SELECT node, rank, mode, step, start_ns, dur_ns, median_ns, dur_ns / NULLIF(median_ns, 0) AS ratio
FROM (
    SELECT *, median(dur_ns) OVER (PARTITION BY node, rank, mode, ingest_id) AS median_ns
    FROM steps
    WHERE run = run_name AND complete AND (of_mode IS NULL OR mode = of_mode)
)
WHERE dur_ns >= factor * median_ns AND dur_ns > median_ns
ORDER BY ratio DESC NULLS FIRST, start_ns;

COMMENT ON MACRO TABLE step_outliers IS 'Steps that took a multiple of the median of their node, rank and mode.';
