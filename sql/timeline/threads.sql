-- The threads of a merged timeline: process_key, tid (as in events), owner, shown_tid, thread_name.
-- A viewer keeps whole numbers up to 2^53; a thread beyond them gets a number here, and so does one
-- whose number a thread of another process has, on the track of the same phase.
-- $run, $from, $until, $clock: as in sources.sql.
CREATE OR REPLACE TEMP TABLE timeline_threads AS
SELECT
    process_key, tid, owner,
    CASE
        WHEN
            COALESCE(tid BETWEEN 0 AND 9007199254740991, TRUE)
            AND ROW_NUMBER() OVER (PARTITION BY process_key, tid ORDER BY owner) = 1
            THEN tid
        ELSE 9000000000 + ROW_NUMBER() OVER (PARTITION BY process_key ORDER BY tid, owner)
    END AS shown_tid,
    thread_name
FROM (
    SELECT process_key, tid, owner, MIN(thread_name) AS thread_name
    FROM timeline_events($run, $from, $until, $clock)
    GROUP BY process_key, tid, owner
)
