-- The data files of one node of a run: table, path, and whether it holds live rows.
-- $run_key, $node_key: its partition.
SELECT kind, filename, COUNT(s.ingest_id) > 0 AS is_live
FROM (
    SELECT run, node, filename, 'events' AS kind, ingest_id FROM _event_locations
    UNION ALL
    SELECT run, node, filename, 'metrics' AS kind, ingest_id FROM _metric_locations
) AS f
LEFT JOIN _live_sources AS s ON s.ingest_id = f.ingest_id
WHERE f.run = $run_key AND f.node = $node_key
GROUP BY ALL
ORDER BY ALL
