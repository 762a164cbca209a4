-- The threads of a merged timeline: process_key, tid (as in events), shown_tid, thread_name.
-- A viewer keeps whole numbers up to 2^53; a thread beyond them gets a number here.
-- $run, $from, $until, $clock: as in sources.sql.
CREATE OR REPLACE TEMP TABLE timeline_threads AS
SELECT
    process_key, tid,
    CASE
        WHEN tid IS NULL OR tid BETWEEN 0 AND 9007199254740991 THEN tid
        ELSE 9000000000 + ROW_NUMBER() OVER (PARTITION BY process_key ORDER BY tid)
    END AS shown_tid,
    thread_name
FROM (
    SELECT process_key, tid, MIN(thread_name) AS thread_name
    FROM timeline_events($run, $from, $until, $clock)
    GROUP BY process_key, tid
)
