-- The files whose newest reading failed: of each uri the newest row, where it is an error.
CREATE OR REPLACE VIEW _failed_sources AS
WITH deleted AS (
    SELECT run, MAX(version) AS version FROM _ledger WHERE action = 'delete' GROUP BY run
),

newest AS (
    SELECT *
    FROM _ledger
    WHERE action = 'ingest'
    QUALIFY ROW_NUMBER() OVER (
        PARTITION BY uri ORDER BY version DESC, committed_at DESC, ingest_id DESC
    ) = 1
)

SELECT newest.*
FROM newest
LEFT JOIN deleted ON deleted.run = newest.run
WHERE newest.error IS NOT NULL AND (deleted.version IS NULL OR newest.version > deleted.version);
