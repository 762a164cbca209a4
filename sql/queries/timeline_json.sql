-- The lines of a Chrome trace, a JSON array, of everything in a range of time of a run: first the
-- names and the order of processes and threads, then all events by start.
-- $run: its name; $from, $until: nanoseconds, both included, null for no bound; $clock: epoch or
-- trace; $uris: endings of the names of the files whose events are taken, null for all;
-- $metrics: whether samples become counters; $low_gpu: percent, null for none: an instant marks
-- each time at which a GPU of a node is used less.
-- Column: line. Times are microseconds with all their nanoseconds.
WITH chosen AS (
    SELECT
        s.ingest_id, s.format IN ('smdebug', 'horovod') AS is_by_name,
        -- Ids of flows and async operations are those of their file.
        CASE
            WHEN COUNT(*) OVER () > 1 THEN concat(DENSE_RANK() OVER (ORDER BY s.uri), '-') ELSE ''
        END AS id_prefix
    FROM sources AS s
    WHERE
        s.run = $run AND s.clock = $clock AND s.event_rows > 0
        AND s.first_ns <= COALESCE($until, 9223372036854775807)
        AND s.last_ns >= COALESCE($from, -9223372036854775807)
        AND (
            $uris IS NULL OR list_bool_or(list_transform($uris, lambda u: ends_with(s.uri, u)))
        )
),

placed AS (
    SELECT
        e.seq, e.kind, e.ts_ns, e.dur_ns, e.end_ns, e.name, e.category, e.process_name,
        e.thread_name, e.node, e.rank, e.tid, e.args, c.id_prefix || e.id AS id,
        -- Processes of smdebug and horovod are phases and tensors, whatever their number.
        CASE WHEN NOT c.is_by_name OR e.process_name IS NULL THEN e.pid END AS own_pid,
        concat(e.node, chr(0), e.rank, chr(0), e.process_name, chr(0), own_pid) AS process_key
    FROM events_between($run, $from, $until, clock_name := $clock) AS e
    INNER JOIN chosen AS c ON c.ingest_id = e.ingest_id
),

shown_metrics AS (
    SELECT
        ingest_id, seq, ts_ns, node, device, metric, value,
        concat(node, chr(0), 'system metrics') AS process_key,
        CASE
            WHEN resource = 'counter' THEN device ELSE concat_ws(' ', device, metric)
        END AS counter,
        CASE WHEN resource = 'counter' THEN metric ELSE 'value' END AS series
    FROM metrics_between($run, $from, $until, clock_name := $clock)
    WHERE value IS NOT NULL AND NOT isnan(value) AND NOT isinf(value)
),

-- In the order that the readers of such timelines know, then what has another name.
processes AS (
    SELECT
        process_key, node, rank, process_name,
        ROW_NUMBER() OVER (ORDER BY place, rank NULLS FIRST, node, process_name, own_pid) AS pid,
        CASE WHEN COUNT(DISTINCT node) OVER () > 1 THEN ' ' || node ELSE '' END
        || CASE
            WHEN COUNT(DISTINCT rank) OVER () > 1 AND rank IS NOT NULL THEN concat(' rank ', rank)
            ELSE ''
        END AS suffix
    FROM (
        SELECT DISTINCT
            process_key, node, rank, process_name, own_pid,
            CASE
                WHEN contains(process_name, 'Step:') THEN 1
                WHEN contains(process_name, 'Forward') THEN 2
                WHEN contains(process_name, 'Backward') THEN 3
                WHEN contains(process_name, 'DataIterator') THEN 4
                WHEN contains(process_name, 'Dataset') THEN 5
                WHEN contains(process_name, '/device') THEN 6
                WHEN contains(process_name, '/host') THEN 7
                WHEN contains(process_name, 'gpu_functions') THEN 8
                WHEN contains(process_name, 'cpu_functions') THEN 9
                WHEN contains(process_name, 'Horovod') THEN 10
                ELSE 11
            END AS place
        FROM placed
        UNION ALL
        SELECT DISTINCT process_key, node, NULL, 'system metrics', NULL, 12
        FROM shown_metrics
        WHERE $metrics OR ($low_gpu IS NOT NULL AND metric = 'GPUUtilization' AND value < $low_gpu)
    )
),

-- A viewer keeps whole numbers up to 2^53; beyond them a thread is numbered here.
threads AS (
    SELECT
        process_key, tid,
        CASE
            WHEN tid IS NULL OR tid BETWEEN 0 AND 9007199254740991 THEN tid
            ELSE 9000000000 + ROW_NUMBER() OVER (PARTITION BY process_key ORDER BY tid)
        END AS shown_tid,
        thread_name
    FROM (
        SELECT process_key, tid, MIN(thread_name) AS thread_name
        FROM placed
        GROUP BY process_key, tid
    )
),

headers AS (
    SELECT pid, 0 AS part, 0 AS tid, json_object(
        'ph', 'M', 'name', 'process_name', 'pid', pid,
        'args', json_object('name', ltrim(COALESCE(process_name, '') || suffix))
    )::VARCHAR AS text
    FROM processes
    WHERE process_name IS NOT NULL OR suffix <> ''
    UNION ALL
    SELECT pid, 1, 0, json_object(
        'ph', 'M', 'name', 'process_sort_index', 'pid', pid, 'args', json_object('sort_index', pid)
    )::VARCHAR
    FROM processes
    UNION ALL
    SELECT p.pid, 2, t.shown_tid, json_object(
        'ph', 'M', 'name', 'thread_name', 'pid', p.pid, 'tid', t.shown_tid,
        'args', json_object('name', t.thread_name)
    )::VARCHAR
    FROM threads AS t
    INNER JOIN processes AS p ON p.process_key = t.process_key
    WHERE t.thread_name IS NOT NULL
),

-- Both ends of an async operation are events of their own in the file.
ends AS (
    SELECT *, FALSE AS is_end, ts_ns AS at_ns FROM placed
    UNION ALL
    SELECT *, TRUE, end_ns FROM placed WHERE kind = 'async' AND end_ns IS NOT NULL
),

traced AS (
    SELECT
        e.at_ns, e.is_end, COALESCE(e.dur_ns, 9223372036854775807) AS length_ns, e.seq,
        concat(
            '{"ph":"',
            CASE e.kind
                WHEN 'slice' THEN CASE WHEN e.dur_ns IS NULL THEN 'B' ELSE 'X' END
                WHEN 'instant' THEN 'i'
                WHEN 'async' THEN CASE WHEN e.is_end THEN 'e' ELSE 'b' END
                WHEN 'async_instant' THEN 'n'
                WHEN 'flow_start' THEN 's'
                WHEN 'flow_step' THEN 't'
                WHEN 'flow_end' THEN 'f'
                WHEN 'object' THEN 'O'
                WHEN 'mark' THEN 'c'
                ELSE 'P'
            END,
            '","ts":', microseconds(e.at_ns),
            CASE
                WHEN e.kind = 'slice' AND e.dur_ns IS NOT NULL
                    THEN ',"dur":' || microseconds(e.dur_ns)
                WHEN e.kind = 'instant' THEN ',"s":"t"'
                WHEN e.kind = 'flow_end' THEN ',"bp":"e"'
            END,
            ',"pid":', p.pid,
            ',"tid":' || t.shown_tid,
            ',"name":' || to_json(e.name)::VARCHAR,
            ',"cat":' || to_json(e.category)::VARCHAR,
            ',"id":' || to_json(e.id)::VARCHAR,
            CASE WHEN NOT e.is_end THEN ',"args":' || e.args::VARCHAR END,
            '}'
        ) AS text
    FROM ends AS e
    INNER JOIN processes AS p ON p.process_key = e.process_key
    INNER JOIN threads AS t
        ON t.process_key = e.process_key AND t.tid IS NOT DISTINCT FROM e.tid
),

counters AS (
    SELECT
        ANY_VALUE(m.ts_ns) AS at_ns, TRUE AS is_end, 0 AS length_ns, m.seq,
        json_object(
            'ph', 'C', 'ts', microseconds(ANY_VALUE(m.ts_ns))::JSON, 'pid', ANY_VALUE(p.pid),
            'tid', 0, 'name', ANY_VALUE(m.counter), 'args', json_group_object(m.series, m.value)
        )::VARCHAR AS text
    FROM shown_metrics AS m
    INNER JOIN processes AS p ON p.process_key = m.process_key
    WHERE $metrics
    GROUP BY m.ingest_id, m.seq
),

low_gpu AS (
    SELECT
        m.ts_ns AS at_ns, TRUE AS is_end, 0 AS length_ns, MIN(m.seq) AS seq,
        json_object(
            'ph', 'i', 'ts', microseconds(m.ts_ns)::JSON, 'pid', ANY_VALUE(p.pid), 'tid', 0,
            's', 'g', 'name', 'low GPU utilization', 'cat', 'system_metrics',
            'args', json_group_object(m.device, m.value)
        )::VARCHAR AS text
    FROM shown_metrics AS m
    INNER JOIN processes AS p ON p.process_key = m.process_key
    WHERE $low_gpu IS NOT NULL AND m.metric = 'GPUUtilization' AND m.value < $low_gpu
    GROUP BY m.ts_ns, m.node
),

lines AS (
    SELECT
        0 AS part, pid AS at_ns, FALSE AS is_end, part AS length_ns, tid AS seq,
        CASE
            WHEN ROW_NUMBER() OVER (ORDER BY pid, part, tid) = 1 THEN '['
            ELSE ','
        END || text AS line
    FROM headers
    UNION ALL
    SELECT 0, 0, FALSE, 0, 0, '[' WHERE NOT EXISTS (FROM headers)
    UNION ALL
    SELECT 1, at_ns, is_end, -length_ns, seq, ',' || text FROM traced
    UNION ALL
    SELECT 1, at_ns, is_end, -length_ns, seq, ',' || text FROM counters
    UNION ALL
    SELECT 1, at_ns, is_end, -length_ns, seq, ',' || text FROM low_gpu
    UNION ALL
    SELECT 2, 0, FALSE, 0, 0, ']'
)

SELECT line
FROM lines
ORDER BY part, at_ns, is_end, length_ns, seq
