-- The ledger rows that count now: of each uri the newest row that brought content, unless its run
-- was deleted after it. A compacted copy has the version of what it copies and a later commit.
CREATE OR REPLACE VIEW _live_sources AS
WITH deleted AS (
    SELECT run, MAX(version) AS version FROM _ledger WHERE action = 'delete' GROUP BY run
),

newest AS (
    SELECT *
    FROM _ledger
    WHERE action = 'ingest' AND error IS NULL
    QUALIFY ROW_NUMBER() OVER (
        PARTITION BY uri ORDER BY version DESC, committed_at DESC, ingest_id DESC
    ) = 1
)

SELECT newest.*
FROM newest
LEFT JOIN deleted ON deleted.run = newest.run
WHERE deleted.version IS NULL OR newest.version > deleted.version;
