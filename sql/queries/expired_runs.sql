-- The runs that a rule no longer keeps: run. $keep_days: those of which a file was last read within
-- so many days are kept; $keep_runs: and so many of the newest; null for a rule that is not given.
-- A run is kept where any given rule keeps it.
SELECT run
FROM (
    SELECT
        run,
        -- A version is when the file was read, in microseconds; compaction keeps it.
        make_timestamp(MAX(version)) AS latest,
        ROW_NUMBER() OVER (ORDER BY MAX(version) DESC, run) AS place
    FROM _live_sources
    GROUP BY run
)
WHERE
    COALESCE(latest < now() AT TIME ZONE 'UTC' - to_seconds($keep_days::DOUBLE * 86400), TRUE)
    AND COALESCE(place > $keep_runs, TRUE)
    AND ($keep_days IS NOT NULL OR $keep_runs IS NOT NULL)
ORDER BY run
