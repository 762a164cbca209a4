-- The files whose newest reading failed: of each uri the newest row, where it is an error.
CREATE OR REPLACE VIEW _failed_sources AS
SELECT newest.*
FROM (
    SELECT *
    FROM _ledger
    WHERE action IN ('ingest', 'gone')
    QUALIFY ROW_NUMBER() OVER (
        PARTITION BY uri ORDER BY version DESC, committed_at DESC, ingest_id DESC
    ) = 1
) AS newest
LEFT JOIN _deleted_runs AS d ON d.run = newest.run
WHERE newest.error IS NOT NULL AND (d.version IS NULL OR newest.version > d.version);
