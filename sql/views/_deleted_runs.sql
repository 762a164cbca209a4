-- The newest deletion of each run, which hides all rows of the run up to its version: delete where
-- somebody deleted it, expire where a rule of retention let go of it.
CREATE OR REPLACE VIEW _deleted_runs AS
SELECT
    run, MAX(version) AS version, ARG_MAX(action, version) AS action,
    ARG_MAX(committed_at, version) AS committed_at
FROM _ledger
WHERE action IN ('delete', 'expire')
GROUP BY run;
