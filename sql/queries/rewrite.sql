-- The live rows of some data files of one partition, under their new ingest ids, sorted.
-- $files: their paths, a list; mapping: ingest_id, new_id of the live sources.
SELECT f.* REPLACE (m.new_id AS ingest_id)
FROM read_parquet($files) AS f
INNER JOIN mapping AS m ON m.ingest_id = f.ingest_id
ORDER BY f.ts_ns, f.seq
