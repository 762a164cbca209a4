-- Times that cut a merged timeline into slices of about $rows lines each: a list, ascending, null
-- where one slice is enough. What is sorted at once is one slice, so memory is bounded.
-- $run, $from, $until, $clock, $metrics: as in processes.sql.
WITH t AS (
    SELECT ts_ns FROM timeline_events($run, $from, $until, $clock)
    UNION ALL
    SELECT ts_ns FROM timeline_samples($run, $from, $until, $clock) WHERE $metrics
),

counted AS (
    SELECT CEIL(COUNT(*) / $rows)::BIGINT AS slices FROM t
),

-- A histogram by thousands of the range: about is enough, and it needs no memory.
parts AS (
    SELECT
        (ts_ns - low_ns) // GREATEST((high_ns - low_ns) // 100000, 1) AS part,
        MIN(ts_ns) AS ts_ns, COUNT(*) AS events
    FROM t, (SELECT MIN(ts_ns)::HUGEINT AS low_ns, MAX(ts_ns)::HUGEINT AS high_ns FROM t)
    GROUP BY part
),

placed AS (
    SELECT ts_ns, (SUM(events) OVER (ORDER BY ts_ns) - events) // $rows AS slice FROM parts
)

SELECT LIST(first_ns ORDER BY first_ns)
FROM (SELECT MIN(ts_ns) AS first_ns FROM placed WHERE slice > 0 GROUP BY slice)
