-- Which nodes of which runs have a partition in more than one file that holds live rows, or a
-- file in which dead rows stand beside live ones. $run: one run, or null for all.
-- Columns: run_key, node_key.
WITH files AS (
    SELECT run, node, hour, filename, 'events' AS kind, ingest_id
    FROM _event_locations
    UNION ALL
    SELECT run, node, hour, filename, 'metrics' AS kind, ingest_id
    FROM _metric_locations
),

counted AS (
    SELECT
        f.run, f.node, f.hour, f.kind, f.filename,
        COUNT(DISTINCT f.ingest_id) AS all_ids,
        COUNT(DISTINCT s.ingest_id) AS live_ids
    FROM files AS f
    LEFT JOIN _live_sources AS s ON s.ingest_id = f.ingest_id
    GROUP BY ALL
)

SELECT run, node
FROM counted
WHERE
    live_ids > 0
    AND ($run IS NULL OR run IN (SELECT run_key FROM _live_sources WHERE run = $run))
GROUP BY run, node, hour, kind
HAVING COUNT(*) > 1 OR BOOL_OR(all_ids > live_ids)
QUALIFY ROW_NUMBER() OVER (PARTITION BY run, node) = 1
ORDER BY run, node
