-- Ids of async operations that several processes of one file use, each for its own (as id2.local):
-- ingest_id, category (empty for none), id. Viewers would join them.
-- $run, $from, $until, $clock: as in sources.sql.
CREATE OR REPLACE TEMP TABLE timeline_shared_ids AS
SELECT e.ingest_id, COALESCE(e.category, '') AS category, e.id
FROM events_between($run, $from, $until, clock_name := $clock) AS e
WHERE e.kind = 'async' AND e.ingest_id IN (SELECT ingest_id FROM timeline_sources)
GROUP BY e.ingest_id, category, e.id
HAVING COUNT(DISTINCT e.pid) > 1
