-- The rows of the events table of one file of one partition, sorted. $run_key, $node_key: the
-- partition; $from_ns, $last_ns: its hour, both included; $clock: epoch or trace. The file takes
-- the events of the batch from $first_place to $until_place, half open: a segment, whose staged
-- events are the table staged. They stand in the files from $first_file to $last_file and, if
-- that is one, from $first_seq to $until_seq, which says it in columns that prune.
-- Columns of the result: see views/events.sql. What an end says of its slice wins over its begin.
WITH p AS (
    SELECT
        file_no, seq, ph, ts_ns, dur_ns, name, category, pid, tid, pid_text, tid_text, id,
        step_num, batch, device, stream, correlation, external_id, bytes, args
    FROM parsed
    WHERE
        reject IS NULL AND status IS NULL AND ph NOT IN ('M', 'C', 'E', 'e', 'F')
        AND file_no BETWEEN $first_file AND $last_file
        AND seq >= $first_seq AND seq < $until_seq
    UNION ALL
    SELECT
        file_no, seq, ph, ts_ns, dur_ns, name, category, pid, tid, NULL, NULL, id,
        step_num, batch, device, stream, correlation, external_id, bytes, args
    FROM staged
)

SELECT
    f.ingest_id,
    p.seq,
    event_kind(p.ph) AS kind,
    f.base_ns + p.ts_ns AS ts_ns,
    CASE
        WHEN p.ph = 'X' THEN p.dur_ns
        WHEN p.ph IN ('B', 'b', 'S') THEN TRY_CAST(c.end_ns::HUGEINT - p.ts_ns AS BIGINT)
        ELSE 0
    END AS dur_ns,
    f.base_ns + CASE
        WHEN p.ph = 'X' THEN p.ts_ns + p.dur_ns
        WHEN p.ph IN ('B', 'b', 'S')
            THEN CASE
                WHEN TRY_CAST(c.end_ns::HUGEINT - p.ts_ns AS BIGINT) IS NOT NULL THEN c.end_ns
            END
        ELSE p.ts_ns
    END AS end_ns,
    p.name,
    p.category,
    COALESCE(pn.name, p.pid_text) AS process_name,
    COALESCE(tn.name, p.tid_text) AS thread_name,
    p.pid,
    p.tid,
    CASE WHEN f.format = 'composer' THEN composer_rank(f.rank, p.pid) ELSE f.rank END AS rank,
    COALESCE(CASE f.format
        WHEN 'kineto' THEN kineto_step(p.name, COALESCE(c.step_num, p.step_num), p.batch)
        WHEN 'composer' THEN composer_step(p.name, p.step_num, COALESCE(c.batch, p.batch))
        WHEN 'smdebug' THEN smdebug_step(p.name, COALESCE(c.step_num, p.step_num), p.batch)
        WHEN 'tensorflow' THEN tensorflow_step(p.name, COALESCE(c.step_num, p.step_num), p.batch)
        WHEN 'horovod' THEN horovod_step(p.name, COALESCE(c.step_num, p.step_num), p.batch)
        ELSE chrome_step(p.name, COALESCE(c.step_num, p.step_num), p.batch)
    END, named_step(p.name, pn.name, tn.name)) AS step,
    p.id,
    COALESCE(c.device, p.device) AS device,
    COALESCE(c.stream, p.stream) AS stream,
    COALESCE(c.correlation, p.correlation) AS correlation,
    COALESCE(c.external_id, p.external_id) AS external_id,
    COALESCE(c.bytes, p.bytes) AS bytes,
    CASE
        WHEN c.begin_seq IS NULL THEN p.args
        ELSE merge_args(p.args::VARCHAR, c.end_args::VARCHAR)::JSON
    END AS args
FROM p
INNER JOIN files AS f ON f.file_no = p.file_no
LEFT JOIN closed AS c ON c.file_no = p.file_no AND c.begin_seq = p.seq
LEFT JOIN process_names AS pn ON pn.file_no = p.file_no AND pn.pid = p.pid
LEFT JOIN thread_names AS tn ON tn.file_no = p.file_no AND tn.pid = p.pid AND tn.tid = p.tid
WHERE
    f.run_key = $run_key AND f.node_key = $node_key AND f.clock = $clock
    AND f.base_ns + p.ts_ns >= $from_ns AND f.base_ns + p.ts_ns <= $last_ns
    AND f.first_place + p.seq >= $first_place AND f.first_place + p.seq < $until_place
ORDER BY ts_ns, p.seq
