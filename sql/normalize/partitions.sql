-- Which partitions the rows of one segment of the batch go to: run_key, node_key, clock, hour_no
-- (whole hours since the epoch; null for the clock of a trace), and whether there are events and
-- metrics. Parameters as in events.sql; the segment's staged events are the table staged.
SELECT
    f.run_key, f.node_key, f.clock,
    CASE
        WHEN f.clock = 'epoch'
            THEN (f.base_ns + r.ts_ns) // 3600000000000
                - ((f.base_ns + r.ts_ns) % 3600000000000 < 0)::INT
    END AS hour_no,
    bool_or(r.is_event) AS has_events,
    bool_or(NOT r.is_event) AS has_metrics
FROM (
    SELECT file_no, seq, ts_ns, TRUE AS is_event
    FROM parsed
    WHERE reject IS NULL AND status IS NULL AND ph NOT IN ('M', 'C', 'E', 'e', 'F')
    UNION ALL
    SELECT file_no, seq, ts_ns, FALSE AS is_event
    FROM metric_rows
    UNION ALL
    SELECT file_no, seq, ts_ns, TRUE AS is_event
    FROM staged
) AS r
INNER JOIN files AS f ON f.file_no = r.file_no
WHERE
    r.file_no BETWEEN $first_file AND $last_file
    AND r.seq >= $first_seq AND r.seq < $until_seq
    AND f.first_place + r.seq >= $first_place AND f.first_place + r.seq < $until_place
GROUP BY ALL
ORDER BY ALL
