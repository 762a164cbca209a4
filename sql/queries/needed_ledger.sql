-- Ledger files that must stay (batch_id): those with a live, a failed or an expired row, deletions
-- that still hide older rows, and newest rows of a file, or that it is gone, that hide older ones
-- in another ledger file.
SELECT DISTINCT batch_id FROM _shown_sources
UNION
SELECT batch_id FROM _expired_sources
UNION
SELECT d.batch_id
FROM _ledger AS d
WHERE
    d.action IN ('delete', 'expire')
    AND EXISTS (
        SELECT 1 FROM _ledger AS l
        WHERE l.action = 'ingest' AND l.run = d.run AND l.version <= d.version
    )
UNION
SELECT n.batch_id
FROM _content_sources AS n
WHERE EXISTS (
    SELECT 1 FROM _ledger AS l
    WHERE l.action = 'ingest' AND l.uri = n.uri AND l.batch_id <> n.batch_id
)
UNION
SELECT g.batch_id
FROM _ledger AS g
WHERE
    g.action = 'gone'
    AND EXISTS (
        SELECT 1 FROM _ledger AS l
        WHERE l.action = 'ingest' AND l.uri = g.uri AND l.version <= g.version
    )
