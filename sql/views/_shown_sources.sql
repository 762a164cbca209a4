-- The ledger as users see it: the rows that count, and the files whose newest reading failed.
CREATE OR REPLACE VIEW _shown_sources AS
SELECT * FROM _live_sources
UNION ALL
SELECT * FROM _failed_sources;
