-- The system metrics of a run in a range of time, as smdebug's system frame and reader have them.
-- $run: its name; $from, $until: nanoseconds, both included, null for no bound; $clock: epoch or
-- trace; $selected: names of devices, null for all; $type: cpu, gpu, i/o, …, null for all; $uris:
-- endings of the names of files, null for all.
-- Columns: timestamp (text, UTC), ts_ns, value, system_metric (device), dimension (metric), nodeID,
-- type, ingest_id, seq.
SELECT
    strftime(make_timestamp_ns(m.ts_ns), '%Y-%m-%dT%H:%M:%S:%f') AS timestamp,
    m.ts_ns, m.value, m.device AS system_metric, m.metric AS dimension, m.node AS "nodeID",
    CASE m.resource WHEN 'disk' THEN 'i/o' ELSE m.resource END AS type, m.ingest_id, m.seq
FROM metrics_between($run, $from, $until, clock_name := $clock) AS m
INNER JOIN sources AS s ON s.ingest_id = m.ingest_id
WHERE
    s.format = 'system'
    AND ($selected IS NULL OR list_contains($selected, m.device))
    AND ($type IS NULL OR $type = CASE m.resource WHEN 'disk' THEN 'i/o' ELSE m.resource END)
    AND ($uris IS NULL OR list_bool_or(list_transform($uris, lambda u: ends_with(s.uri, u))))
ORDER BY m.ts_ns, m.ingest_id, m.seq
