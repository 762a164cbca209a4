-- What is in the lake, one row a run.
-- Example: SELECT run, events, first_ns FROM runs ORDER BY first_ns;
CREATE OR REPLACE VIEW runs AS
SELECT
    run,
    COUNT(DISTINCT node) AS nodes,
    COUNT(DISTINCT rank) AS ranks,
    COUNT(*) AS files,
    LIST_SORT(LIST(DISTINCT format)) AS formats,
    SUM(event_rows)::BIGINT AS events,
    SUM(metric_rows)::BIGINT AS metrics,
    SUM(rejected)::BIGINT AS rejected,
    MIN(first_ns) FILTER (clock = 'epoch') AS first_ns,
    MAX(last_ns) FILTER (clock = 'epoch') AS last_ns
FROM _live_sources
GROUP BY run;

COMMENT ON VIEW runs IS 'What is in the lake, one row a run.';
COMMENT ON COLUMN runs.run IS 'Training job.';
COMMENT ON COLUMN runs.nodes IS 'Machines.';
COMMENT ON COLUMN runs.ranks IS 'Ranks that its files name.';
COMMENT ON COLUMN runs.files IS 'Files whose content is in the lake.';
COMMENT ON COLUMN runs.formats IS 'Formats of its files.';
COMMENT ON COLUMN runs.events IS 'Rows in events.';
COMMENT ON COLUMN runs.metrics IS 'Rows in metrics.';
COMMENT ON COLUMN runs.rejected IS 'Rejected pieces of its files.';
COMMENT ON COLUMN runs.first_ns IS 'Earliest start in nanoseconds since the epoch, of files with such a clock.';
COMMENT ON COLUMN runs.last_ns IS 'Latest end in nanoseconds since the epoch, of files with such a clock.';
