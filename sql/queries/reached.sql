-- Up to which time a run has data: reached_ns (nanoseconds since the epoch), the earlier of what
-- its system metrics and its traces reach; of the one where the other is not there; null for none.
-- $run: its name, null for all runs.
SELECT MIN(last_ns) AS reached_ns
FROM (
    SELECT MAX(last_ns) AS last_ns
    FROM _live_sources
    WHERE clock = 'epoch' AND ($run IS NULL OR run = $run)
    GROUP BY format = 'system'
)
