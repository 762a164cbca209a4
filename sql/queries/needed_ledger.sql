-- Ledger files that must stay (batch_id): those with a live or a failed row, and deletions that
-- still hide older rows.
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
