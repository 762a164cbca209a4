-- Which files of which partitions the rows of the batch go to: run_key, node_key, clock, hour_no
-- (whole hours since the epoch; null for the clock of a trace), segment, and whether there are
-- events and metrics in it. A segment is $segment_events events of the batch, in the order of the
-- documents, so that sorting one never needs more memory than there is.
SELECT
    f.run_key, f.node_key, f.clock,
    CASE
        WHEN f.clock = 'epoch'
            THEN (f.base_ns + r.ts_ns) // 3600000000000
                - ((f.base_ns + r.ts_ns) % 3600000000000 < 0)::INT
    END AS hour_no,
    (f.first_place + r.seq) // $segment_events AS segment,
    bool_or(r.is_event) AS has_events,
    bool_or(NOT r.is_event) AS has_metrics
FROM (
    SELECT file_no, seq, ts_ns, TRUE AS is_event
    FROM parsed
    WHERE reject IS NULL AND status IS NULL AND ph NOT IN ('M', 'C', 'E', 'e', 'F')
    UNION ALL
    SELECT file_no, seq, ts_ns, FALSE AS is_event
    FROM metric_rows
) AS r
INNER JOIN files AS f ON f.file_no = r.file_no
GROUP BY ALL
ORDER BY ALL
