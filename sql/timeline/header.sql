-- The metadata of a merged timeline, in its order, each line with its line break: its zero, names
-- and order of the processes, names of threads. It opens the JSON array. $base: the zero in
-- nanoseconds, as in base.sql. Names that are empty are left out: viewers take them for errors.
WITH headers AS (
    SELECT 0 AS pid, 0 AS part, 0 AS tid, json_object(
        'ph', 'M', 'name', 'process_name', 'pid', 0,
        'args', json_object('start_time_since_epoch_in_micros', $base::BIGINT // 1000)
    )::VARCHAR AS text
    WHERE $base <> 0
    UNION ALL
    SELECT pid, 0, 0, json_object(
        'ph', 'M', 'name', 'process_name', 'pid', pid,
        'args', json_object('name', ltrim(COALESCE(process_name, '') || suffix))
    )::VARCHAR
    FROM timeline_processes
    WHERE process_name <> '' OR suffix <> ''
    UNION ALL
    SELECT pid, 1, 0, json_object(
        'ph', 'M', 'name', 'process_sort_index', 'pid', pid, 'args', json_object('sort_index', pid)
    )::VARCHAR
    FROM timeline_processes
    UNION ALL
    SELECT p.pid, 2, t.shown_tid, json_object(
        'ph', 'M', 'name', 'thread_name', 'pid', p.pid, 'tid', t.shown_tid,
        'args', json_object('name', t.thread_name)
    )::VARCHAR
    FROM timeline_threads AS t
    INNER JOIN timeline_processes AS p ON p.process_key = t.process_key
    WHERE t.thread_name <> ''
)

SELECT
    CASE WHEN ROW_NUMBER() OVER (ORDER BY pid, part, tid) = 1 THEN '[' ELSE ',' END
    || text || chr(10) AS line
FROM headers
UNION ALL
SELECT '[' || chr(10) WHERE NOT EXISTS (FROM headers)
