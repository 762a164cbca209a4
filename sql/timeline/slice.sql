-- One slice of the events and samples of a merged timeline, by time, each line with its line
-- break, as Chrome's trace format has them. Times are microseconds with all their nanoseconds, from
-- $base on, which is in nanoseconds, as in base.sql. $run, $from, $until, $clock, $metrics,
-- $low_gpu: as in processes.sql; $first, $last: the slice, in nanoseconds, half open.
WITH ends AS (
    SELECT *, FALSE AS is_end, ts_ns AS at_ns
    FROM timeline_events($run, $from, $until, $clock)
    WHERE ts_ns >= $first AND ts_ns < $last
    UNION ALL
    -- Both ends of an async operation are events of their own in the file.
    SELECT *, TRUE, end_ns
    FROM timeline_events($run, $from, $until, $clock)
    WHERE kind = 'async' AND end_ns >= $first AND end_ns < $last AND ts_ns < $last
),

traced AS (
    SELECT
        e.at_ns,
        -- What ends gives way to what begins, the inner before the outer.
        CASE WHEN NOT e.is_end THEN 1 WHEN e.dur_ns = 0 THEN 2 ELSE 0 END AS place,
        CASE WHEN e.is_end THEN -e.dur_ns ELSE COALESCE(e.dur_ns, 9223372036854775807) END
            AS length_ns,
        e.seq, e.ordinal, p.pid,
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
                WHEN 'flow_end_next' THEN 'f'
                WHEN 'object' THEN 'O'
                WHEN 'mark' THEN 'c'
                ELSE 'P'
            END,
            '","ts":', microseconds(e.at_ns - $base),
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
            CASE WHEN NOT e.is_end THEN ',"args":' || timeline_args(e.args::VARCHAR) END,
            '}'
        ) AS text
    FROM ends AS e
    INNER JOIN timeline_processes AS p ON p.process_key = e.process_key
    INNER JOIN timeline_threads AS t
        ON t.process_key = e.process_key AND t.tid IS NOT DISTINCT FROM e.tid
        AND t.owner IS NOT DISTINCT FROM e.owner
),

counters AS (
    SELECT
        ANY_VALUE(m.ts_ns) AS at_ns, 2 AS place, 0 AS length_ns, m.seq, 0 AS ordinal,
        ANY_VALUE(p.pid) AS pid,
        concat(
            '{"ph":"C","ts":', microseconds(ANY_VALUE(m.ts_ns) - $base),
            ',"pid":', ANY_VALUE(p.pid), ',"tid":0,"name":', to_json(m.counter),
            ',"args":', json_group_object(m.series, m.value), '}'
        ) AS text
    FROM timeline_samples($run, $from, $until, $clock) AS m
    INNER JOIN timeline_processes AS p ON p.process_key = m.process_key
    WHERE $metrics AND m.ts_ns >= $first AND m.ts_ns < $last
    -- One event may have been samples of several metrics.
    GROUP BY m.ingest_id, m.seq, m.counter
),

low_gpu AS (
    SELECT
        m.ts_ns AS at_ns, 2 AS place, 0 AS length_ns, MIN(m.seq) AS seq, 0 AS ordinal,
        ANY_VALUE(p.pid) AS pid,
        concat(
            '{"ph":"i","ts":', microseconds(m.ts_ns - $base),
            ',"pid":', ANY_VALUE(p.pid), ',"tid":0,"s":"g","name":"low GPU utilization"',
            ',"cat":"system_metrics","args":', json_group_object(m.device, m.value), '}'
        ) AS text
    FROM timeline_samples($run, $from, $until, $clock) AS m
    INNER JOIN timeline_processes AS p ON p.process_key = m.process_key
    WHERE
        $low_gpu IS NOT NULL AND m.ts_ns >= $first AND m.ts_ns < $last
        AND m.metric = 'GPUUtilization' AND m.value < $low_gpu
    GROUP BY m.ts_ns, m.process_key
)

SELECT ',' || text || chr(10) AS line
FROM (FROM traced UNION ALL FROM counters UNION ALL FROM low_gpu)
ORDER BY at_ns, place, length_ns DESC, ordinal, seq, pid
