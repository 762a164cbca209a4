-- The rows of the metrics table of one file of one partition, sorted; parameters as in events.sql.
SELECT
    f.ingest_id,
    m.seq,
    f.base_ns + m.ts_ns AS ts_ns,
    m.resource,
    m.device,
    m.metric,
    m.value,
    m.unit,
    m.rank
FROM metric_rows AS m
INNER JOIN files AS f ON f.file_no = m.file_no
WHERE
    f.run_key = $run_key AND f.node_key = $node_key AND f.clock = $clock
    AND f.base_ns + m.ts_ns >= $from_ns AND f.base_ns + m.ts_ns <= $last_ns
    AND m.file_no BETWEEN $first_file AND $last_file
    AND m.seq >= $first_seq AND m.seq < $until_seq
    AND f.first_place + m.seq >= $first_place AND f.first_place + m.seq < $until_place
ORDER BY ts_ns, m.seq
