-- Pairs begins with ends: threads by (pid, tid), async operations by (category, id).
-- Pairing follows time, and the order in the file where times are equal. A named end closes the
-- innermost open begin of its name, an end without a name the innermost open begin.
--
-- Where every end closes the innermost begin, begin and end are neighbours at their depth:
--
--     B a    B b    E      E a         depth of a begin: after it; of an end: before it
--      1      2     2       1
--
-- so one pass of window functions pairs them all. Where a name disagrees, but every end of the
-- track has a name, the names are stacks of their own, and the same pass pairs each of them. What
-- is left, ends without a name among others that skip begins, goes to open_marks, for
-- pairs_step.sql. An end that nothing opened lowers the ground for those after it, which changes
-- no pair.

CREATE OR REPLACE TEMP TABLE marks AS
SELECT
    file_no, seq, ts_ns, name, ph IN ('B', 'b', 'S') AS is_begin,
    CASE
        WHEN ph IN ('B', 'E')
            THEN concat('thread', chr(31), COALESCE(pid::VARCHAR, ''), chr(31),
                COALESCE(tid::VARCHAR, ''))
        ELSE concat(CASE WHEN ph IN ('b', 'e') THEN 'async' ELSE 'old async' END, chr(31),
            COALESCE(category, ''), chr(31), COALESCE(id, ''))
    END AS track,
    NULL::VARCHAR AS stack
FROM parsed
WHERE ph IN ('B', 'E', 'b', 'e', 'S', 'F') AND reject IS NULL AND status IS NULL;

-- Each mark with the one before it at its depth of its stack.
CREATE OR REPLACE TEMP MACRO stacked(source) AS TABLE
WITH deep AS (
    SELECT
        *,
        SUM(CASE WHEN is_begin THEN 1 ELSE -1 END) OVER (
            PARTITION BY file_no, track, stack ORDER BY ts_ns, seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) + CASE WHEN is_begin THEN 0 ELSE 1 END AS depth
    FROM query_table(source)
)

SELECT
    file_no, track, seq AS end_seq, name, is_begin,
    LAG(seq) OVER neighbours AS begin_seq,
    LAG(is_begin) OVER neighbours AS after_begin,
    LAG(name) OVER neighbours AS begin_name
FROM deep
WINDOW neighbours AS (PARTITION BY file_no, track, stack, depth ORDER BY ts_ns, seq);

CREATE OR REPLACE TEMP TABLE mixed_tracks AS
WITH mixed AS (
    SELECT DISTINCT file_no, track
    FROM stacked('marks')
    WHERE NOT is_begin AND after_begin AND name IS NOT NULL AND name IS DISTINCT FROM begin_name
)

SELECT file_no, track, bool_and(is_begin OR name IS NOT NULL) AS is_named
FROM marks
SEMI JOIN mixed USING (file_no, track)
GROUP BY file_no, track;

UPDATE marks
SET stack = concat('=', name)
FROM mixed_tracks AS m
WHERE m.is_named AND m.file_no = marks.file_no AND m.track = marks.track AND name IS NOT NULL;

INSERT INTO pairs
SELECT file_no, begin_seq, end_seq
FROM stacked('marks')
ANTI JOIN (FROM mixed_tracks WHERE NOT is_named) USING (file_no, track)
WHERE NOT is_begin AND after_begin;

CREATE OR REPLACE TEMP TABLE open_marks AS
SELECT * EXCLUDE (stack) FROM marks SEMI JOIN (FROM mixed_tracks WHERE NOT is_named)
    USING (file_no, track);
