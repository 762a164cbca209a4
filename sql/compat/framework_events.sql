-- The finished slices of a run in a range of time, as smdebug's framework frame and reader have
-- them. $run: its name; $from, $until: nanoseconds, both included, null for no bound; $clock: epoch
-- or trace; $first_step, $last_step: numbers that the events carry, both included, null for all;
-- $selected: names of events or processes, null for all; $uris: endings of the names of files, null
-- for all.
-- Columns: start_time, end_time (texts, UTC), ts_ns, end_ns, dur_ns, name, tid and pid (of args
-- where given there), phase_tid, phase_pid (of the event), framework_metric, step (-1 for none),
-- bytes (-1 for none), worker_id, num_workers (-1 for none), pin_memory (True, False or NA),
-- process, nodeID, node_id (the same), args, ingest_id, seq, file_type.
SELECT
    strftime(make_timestamp_ns(e.ts_ns), '%Y-%m-%dT%H:%M:%S:%f') AS start_time,
    strftime(make_timestamp_ns(e.end_ns), '%Y-%m-%dT%H:%M:%S:%f') AS end_time,
    e.ts_ns, e.end_ns, e.dur_ns, e.name,
    COALESCE(TRY_CAST(e.args->>'thread_id' AS BIGINT), e.tid, 0) AS tid,
    COALESCE(TRY_CAST(e.args->>'pid' AS BIGINT), e.pid) AS pid,
    COALESCE(e.tid, 0) AS phase_tid,
    e.pid AS phase_pid,
    COALESCE(e.args->>'layer_name', e.args->>'name', e.name) AS framework_metric,
    COALESCE(e.step, -1) AS step,
    COALESCE(TRY_CAST(e.args->>'bytes_fetched' AS BIGINT), -1) AS bytes,
    COALESCE(TRY_CAST(e.args->>'worker_id' AS BIGINT), -1) AS worker_id,
    COALESCE(TRY_CAST(e.args->>'num_workers' AS BIGINT), -1) AS num_workers,
    CASE TRY_CAST(e.args->>'pin_memory' AS BOOLEAN)
        WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' ELSE 'NA'
    END AS pin_memory,
    COALESCE(e.process_name, 'Unknown') AS process,
    e.node AS "nodeID",
    e.node AS node_id,
    e.args::VARCHAR AS args, e.ingest_id, e.seq,
    CASE
        WHEN s.format = 'tensorflow' THEN 'TFProfilerMetrics'
        WHEN s.format = 'horovod' THEN 'HorovodMetrics'
        WHEN ends_with(s.uri, 'model_timeline.json') THEN 'DetailedframeworkMetrics'
        WHEN ends_with(s.uri, 'smdataparallel_timeline.json') THEN 'SMDataParallelMetrics'
        ELSE 'PythontimelineMetrics'
    END AS file_type
FROM events_between($run, $from, $until, clock_name := $clock) AS e
INNER JOIN sources AS s ON s.ingest_id = e.ingest_id
WHERE
    e.kind = 'slice' AND e.dur_ns IS NOT NULL
    AND ($first_step IS NULL OR COALESCE(e.step, -1) >= $first_step)
    AND ($last_step IS NULL OR COALESCE(e.step, -1) <= $last_step)
    AND (
        $selected IS NULL
        OR list_contains($selected, e.name)
        OR list_contains($selected, COALESCE(e.process_name, 'Unknown'))
    )
    AND ($uris IS NULL OR list_bool_or(list_transform($uris, lambda u: ends_with(s.uri, u))))
ORDER BY e.ts_ns, e.ingest_id, e.seq
