-- Since when each batch shows nothing any more: batch_id, run_key, node_key (null for a deletion),
-- dead_since (UTC; null where it still shows something). A row ends with the next reading of its
-- file that brought content, when its file was seen to be gone, or with the deletion of its run.
WITH rows_of_files AS (
    SELECT
        action, batch_id, run_key, node_key, run, version,
        MIN(committed_at) FILTER (error IS NULL) OVER (
            PARTITION BY uri ORDER BY version, committed_at, ingest_id
            ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS superseded_at
    FROM _ledger
    WHERE action IN ('ingest', 'gone')
),

deletions AS (
    SELECT run, version, committed_at FROM _ledger WHERE action IN ('delete', 'expire')
),

ends AS (
    SELECT
        r.batch_id, r.run_key, r.node_key, r.version,
        LEAST(ANY_VALUE(r.superseded_at), MIN(d.committed_at)) AS dead_since
    FROM (
        SELECT *, ROW_NUMBER() OVER () AS row_no FROM rows_of_files WHERE action = 'ingest'
    ) AS r
    LEFT JOIN deletions AS d ON d.run = r.run AND d.version >= r.version
    GROUP BY r.row_no, r.batch_id, r.run_key, r.node_key, r.version
)

SELECT
    batch_id, run_key, node_key,
    CASE WHEN BOOL_AND(dead_since IS NOT NULL) THEN MAX(dead_since) END AS dead_since
FROM ends
GROUP BY batch_id, run_key, node_key
UNION ALL
SELECT batch_id, run_key, NULL, committed_at FROM _ledger WHERE action <> 'ingest'
