-- The steps of a run, each with until_ns: its end, or, where it never ended, just before the next
-- of its node, rank and mode begins, and for the last one the end of the data: it was under way.
-- Columns as in the view steps, then until_ns.
CREATE OR REPLACE MACRO _step_spans(run_name) AS TABLE
SELECT
    s.*,
    COALESCE(
        s.end_ns,
        LEAD(s.start_ns) OVER (
            PARTITION BY s.node, s.rank, s.mode, s.clock, s.ingest_id ORDER BY s.start_ns
        ) - 1,
        GREATEST(d.last_ns, s.start_ns),
        s.start_ns
    ) AS until_ns
FROM steps AS s
LEFT JOIN (
    SELECT clock, MAX(last_ns) AS last_ns FROM _live_sources WHERE run = run_name GROUP BY clock
) AS d ON d.clock = s.clock
WHERE s.run = run_name;
