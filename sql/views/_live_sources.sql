-- The ledger rows that count now: of each uri the newest row that brought content, unless its run
-- was deleted after it.
CREATE OR REPLACE VIEW _live_sources AS
SELECT c.*
FROM _content_sources AS c
LEFT JOIN _deleted_runs AS d ON d.run = c.run
WHERE d.version IS NULL OR c.version > d.version;
