-- All events of one run by start. $run: its name. Columns as in the view events.
SELECT * FROM events WHERE run = $run ORDER BY ts_ns, ingest_id, seq
