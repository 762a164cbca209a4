-- The highest version in the ledger; 0 where it is empty.
SELECT COALESCE(MAX(version), 0) FROM _ledger
