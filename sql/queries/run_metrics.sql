-- All samples of one run by time. $run: its name. Columns as in the view metrics.
SELECT * FROM metrics WHERE run = $run ORDER BY ts_ns, ingest_id, seq
