-- Counts rows (a table as of parse_events.sql), which go to the stage. first_ns and last_ns: the
-- first begin and the last end, without base.
INSERT INTO tally
SELECT
    file_no, ph, COUNT(*), COUNT(*) FILTER (ph = 'X' AND dur_ns IS NULL), MIN(ts_ns),
    MAX(ts_ns + CASE WHEN ph = 'X' THEN COALESCE(dur_ns, 0) ELSE 0 END)
FROM rows
GROUP BY file_no, ph
