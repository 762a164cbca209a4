-- Ledger files that must stay (batch_id): those with a live or a failed row, deletions that still
-- hide older rows, and newest rows of a file that hide older ones in another ledger file.
WITH newest AS (
    SELECT *
    FROM _ledger
    WHERE action = 'ingest' AND error IS NULL
    QUALIFY ROW_NUMBER() OVER (
        PARTITION BY uri ORDER BY version DESC, committed_at DESC, ingest_id DESC
    ) = 1
)

SELECT DISTINCT batch_id FROM _shown_sources
UNION
SELECT d.batch_id
FROM _ledger AS d
WHERE
    d.action = 'delete'
    AND EXISTS (
        SELECT 1 FROM _ledger AS l
        WHERE l.action = 'ingest' AND l.run = d.run AND l.version <= d.version
    )
UNION
SELECT n.batch_id
FROM newest AS n
WHERE EXISTS (
    SELECT 1 FROM _ledger AS l
    WHERE l.action = 'ingest' AND l.uri = n.uri AND l.batch_id <> n.batch_id
)
