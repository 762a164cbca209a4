-- Of each uri the newest ledger row that brought content, whether or not its run was deleted since;
-- none where the file is gone since then. A compacted copy has the version of what it copies and a
-- later commit.
CREATE OR REPLACE VIEW _content_sources AS
SELECT *
FROM (
    SELECT *
    FROM _ledger
    WHERE action IN ('ingest', 'gone') AND error IS NULL
    QUALIFY ROW_NUMBER() OVER (
        PARTITION BY uri ORDER BY version DESC, committed_at DESC, ingest_id DESC
    ) = 1
)
WHERE action = 'ingest';
