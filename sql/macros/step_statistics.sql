-- How long steps take: by mode, the durations of the steps; by process or operator, how long each
-- of them works in a step, from its first start to its last end there. A step counts once for each
-- node and rank, and each time that it ran. stat_by: mode, process or operator. of_mode: only steps
-- of this mode; null for all (where two modes see the same loop, as ProfilerStep beside TRAIN, give
-- one of them).
-- Columns: name (of the mode, process or operator), steps, mean_ns, min_ns, max_ns, p50_ns, p95_ns,
-- p99_ns (durations in nanoseconds; percentiles are interpolated).
-- Example: SELECT name, p95_ns / 1e6 AS p95_ms FROM step_statistics('job', 'process');
CREATE OR REPLACE MACRO step_statistics(run_name, stat_by, of_mode := NULL) AS TABLE
WITH spans AS (
    SELECT mode AS name, dur_ns
    FROM steps
    WHERE
        run = run_name AND complete AND (of_mode IS NULL OR mode = of_mode)
        AND CASE
            WHEN stat_by IN ('mode', 'process', 'operator') THEN stat_by = 'mode'
            ELSE error('step_statistics: give mode, process or operator, not ' || stat_by)
        END
    UNION ALL
    SELECT
        CASE stat_by WHEN 'process' THEN process_name ELSE name END AS name,
        MAX(end_ns) - MIN(ts_ns) AS dur_ns
    FROM step_events(run_name, of_mode := of_mode)
    WHERE
        stat_by <> 'mode' AND kind = 'slice' AND dur_ns IS NOT NULL AND step IS NOT NULL
        AND (of_mode IS NULL OR step_mode = of_mode)
    GROUP BY
        node, rank, CASE WHEN clock = 'trace' THEN ingest_id END, step_mode, step, step_start_ns,
        CASE stat_by WHEN 'process' THEN process_name ELSE name END
)

SELECT
    name, COUNT(*) AS steps, AVG(dur_ns) AS mean_ns, MIN(dur_ns) AS min_ns, MAX(dur_ns) AS max_ns,
    quantile_cont(dur_ns, 0.5) AS p50_ns, quantile_cont(dur_ns, 0.95) AS p95_ns,
    quantile_cont(dur_ns, 0.99) AS p99_ns
FROM spans
GROUP BY name
ORDER BY mean_ns DESC, name;

COMMENT ON MACRO TABLE step_statistics IS 'Durations of steps by mode, or of processes or operators within steps.';
