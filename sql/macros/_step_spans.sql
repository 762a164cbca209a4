-- The steps of a run, each with until_ns: its end, or, where it never ended, just before the next
-- of its node, rank and mode begins, and for the last one the end of the data: it was under way.
-- Columns as in the view steps, then until_ns.
CREATE OR REPLACE MACRO _step_spans(run_name) AS TABLE
SELECT
    s.*,
    GREATEST(s.start_ns, COALESCE(
        s.end_ns,
        MIN(s.start_ns) OVER (
            PARTITION BY s.node, s.rank, s.mode, s.clock, s.ingest_id
            ORDER BY s.start_ns RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) - 1,
        d.last_ns
    )) AS until_ns
FROM steps AS s
LEFT JOIN (
    SELECT
        clock, CASE WHEN clock = 'trace' THEN ingest_id END AS zero, MAX(last_ns) AS last_ns
    FROM _live_sources
    WHERE run = run_name
    GROUP BY ALL
) AS d ON d.clock = s.clock AND d.zero IS NOT DISTINCT FROM s.ingest_id
WHERE s.run = run_name;
