-- The newest deletion of each run: it hides all rows of the run up to its version.
CREATE OR REPLACE VIEW _deleted_runs AS
SELECT run, MAX(version) AS version FROM _ledger WHERE action = 'delete' GROUP BY run;
