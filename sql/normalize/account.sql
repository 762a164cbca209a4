-- What became of every event of every file of the batch, one row a file: file_no, clock, base_ns,
-- first_ns, last_ns, events_read, events_by_phase, event_rows, metric_rows, metadata_events,
-- counter_events, paired_ends, unfinished, unmatched_ends, rejected, empty_events.
-- Reconciles: events_read = event_rows + counter_events + metadata_events + paired_ends
-- + unmatched_ends + rejected. Empty events ({}, null) are not events.
WITH elements AS (
    SELECT file_no, status, reject, ph, dur_ns FROM parsed
    UNION ALL
    SELECT file_no, status, reject, 'sample' AS ph, 0 AS dur_ns FROM samples
),

alike AS (
    SELECT
        file_no, ph, status, reject IS NOT NULL AS is_rejected, COUNT(*) AS n,
        COUNT(*) FILTER (ph IN ('B', 'b', 'S') OR (ph = 'X' AND dur_ns IS NULL)) AS open_slices
    FROM elements
    GROUP BY ALL
    UNION ALL
    SELECT file_no, ph, NULL AS status, FALSE AS is_rejected, events, open_slices FROM tally
),

counted AS (
    SELECT
        file_no,
        SUM(n) FILTER (status IS NULL) AS events_read,
        SUM(n) FILTER (status = 'empty') AS empty_events,
        SUM(n) FILTER (is_rejected) AS rejected,
        SUM(n) FILTER (ph = 'M' AND NOT is_rejected) AS metadata_events,
        SUM(n) FILTER (ph IN ('C', 'sample') AND NOT is_rejected AND status IS NULL)
            AS counter_events,
        SUM(n) FILTER (ph IN ('E', 'e', 'F') AND NOT is_rejected) AS ends,
        SUM(n) FILTER (
            NOT is_rejected AND status IS NULL
            AND ph NOT IN ('M', 'C', 'E', 'e', 'F', 'sample')
        ) AS event_rows,
        SUM(open_slices) FILTER (NOT is_rejected) AS open_slices
    FROM alike
    GROUP BY file_no
),

phases AS (
    SELECT file_no, MAP_FROM_ENTRIES(LIST((ph, events) ORDER BY ph)) AS events_by_phase
    FROM (
        SELECT file_no, COALESCE(ph, '') AS ph, SUM(n)::BIGINT AS events
        FROM alike
        WHERE status IS NULL
        GROUP BY ALL
    )
    GROUP BY file_no
),

-- A pair that no BIGINT of nanoseconds can measure is folded, but stays unfinished.
folded AS (
    SELECT
        file_no, COUNT(*) AS pairs, MAX(end_ns) FILTER (NOT is_endless) AS last_ns,
        COUNT(*) FILTER (is_endless) AS endless
    FROM (
        SELECT
            p.file_no, e.ts_ns AS end_ns,
            TRY_CAST(e.ts_ns::HUGEINT - b.ts_ns AS BIGINT) IS NULL AS is_endless
        FROM pairs AS p
        INNER JOIN parsed AS e ON e.file_no = p.file_no AND e.seq = p.end_seq
        INNER JOIN parsed AS b ON b.file_no = p.file_no AND b.seq = p.begin_seq
    )
    GROUP BY file_no
),

-- From the rows, not from the events: a counter without series has none.
span AS (
    SELECT file_no, MIN(ts_ns) AS first_ns, MAX(end_ns) AS last_ns
    FROM (
        SELECT
            file_no, ts_ns, ts_ns + CASE WHEN ph = 'X' THEN COALESCE(dur_ns, 0) ELSE 0 END AS end_ns
        FROM parsed
        WHERE reject IS NULL AND status IS NULL AND ph NOT IN ('M', 'C', 'E', 'e', 'F')
        UNION ALL
        SELECT file_no, ts_ns, ts_ns AS end_ns FROM metric_rows
        UNION ALL
        SELECT file_no, first_ns, last_ns FROM tally
    )
    GROUP BY file_no
),

measured AS (
    SELECT file_no, COUNT(*) AS metric_rows FROM metric_rows GROUP BY file_no
)

SELECT
    f.file_no, f.clock, f.base_ns,
    f.base_ns + s.first_ns AS first_ns,
    f.base_ns + GREATEST(s.last_ns, p.last_ns) AS last_ns,
    COALESCE(c.events_read, 0)::BIGINT AS events_read,
    COALESCE(ph.events_by_phase, MAP {}::MAP (VARCHAR, BIGINT)) AS events_by_phase,
    COALESCE(c.event_rows, 0)::BIGINT AS event_rows,
    COALESCE(m.metric_rows, 0) AS metric_rows,
    COALESCE(c.metadata_events, 0)::BIGINT AS metadata_events,
    COALESCE(c.counter_events, 0)::BIGINT AS counter_events,
    COALESCE(p.pairs, 0) AS paired_ends,
    (COALESCE(c.open_slices, 0) - COALESCE(p.pairs, 0) + COALESCE(p.endless, 0))::BIGINT
        AS unfinished,
    (COALESCE(c.ends, 0) - COALESCE(p.pairs, 0))::BIGINT AS unmatched_ends,
    COALESCE(c.rejected, 0)::BIGINT AS rejected,
    COALESCE(c.empty_events, 0)::BIGINT AS empty_events
FROM files AS f
LEFT JOIN counted AS c ON c.file_no = f.file_no
LEFT JOIN phases AS ph ON ph.file_no = f.file_no
LEFT JOIN folded AS p ON p.file_no = f.file_no
LEFT JOIN span AS s ON s.file_no = f.file_no
LEFT JOIN measured AS m ON m.file_no = f.file_no
ORDER BY f.file_no
