-- The rows that a rule of retention let go of. What they say is still known, so that the files they
-- were read from are not read again.
CREATE OR REPLACE VIEW _expired_sources AS
SELECT c.*
FROM _content_sources AS c
INNER JOIN _deleted_runs AS d ON d.run = c.run
-- What was committed only after the rule had looked is not what it let go of.
WHERE d.action = 'expire' AND c.version <= d.version AND c.committed_at <= d.committed_at;
