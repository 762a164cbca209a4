-- One round of pairing where ends do not always close the innermost begin. Between two ends of a
-- track all open begins are certain, so each end whose begin stands behind the end before it is
-- decided; decided marks leave, and the next round sees further. Ends that no open begin can
-- match leave too. Run until open_marks holds no end. Rounds: at most the depth of nesting.

CREATE OR REPLACE TEMP TABLE decided AS
WITH placed AS (
    SELECT
        *,
        ROW_NUMBER() OVER track_order AS place,
        COUNT(*) FILTER (NOT is_begin) OVER (
            PARTITION BY file_no, track ORDER BY ts_ns, seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS stretch,
        COUNT(*) FILTER (is_begin) OVER track_order AS begins_before,
        COUNT(*) FILTER (is_begin) OVER (
            PARTITION BY file_no, track, name ORDER BY ts_ns, seq
        ) AS namesakes_before
    FROM open_marks
    WINDOW track_order AS (PARTITION BY file_no, track ORDER BY ts_ns, seq)
)

SELECT
    e.file_no, e.seq AS end_seq, ARG_MAX(b.seq, b.place) AS begin_seq
FROM placed AS e
LEFT JOIN placed AS b
    ON b.file_no = e.file_no AND b.track = e.track AND b.stretch = e.stretch AND b.is_begin
    AND (e.name IS NULL OR b.name IS NOT DISTINCT FROM e.name)
WHERE NOT e.is_begin
GROUP BY e.file_no, e.seq, e.begins_before, e.namesakes_before, e.name
HAVING
    COUNT(b.seq) > 0
    OR CASE WHEN e.name IS NULL THEN e.begins_before ELSE e.namesakes_before END = 0;

INSERT INTO pairs
SELECT file_no, begin_seq, end_seq FROM decided WHERE begin_seq IS NOT NULL;

DELETE FROM open_marks
USING decided
WHERE
    open_marks.file_no = decided.file_no
    AND (open_marks.seq = decided.end_seq OR open_marks.seq = decided.begin_seq);
