-- The runs of a lake for reading: times in UTC.
SELECT
    run, nodes, ranks, files, array_to_string(formats, ', ') AS formats, events, metrics, rejected,
    utc(first_ns) AS first_utc, utc(last_ns) AS last_utc
FROM runs
ORDER BY run
