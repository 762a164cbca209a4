-- Which events were under way at any time from one instant to another, both included? An
-- unfinished slice counts at its start. Null for an end is no bound; clock_name null takes both
-- clocks. The earliest file that reaches into the range bounds the hours that are read; the two
-- halves are apart since only plain comparisons let DuckDB leave out files and row groups.
-- Columns as in the view events.
-- Example: SELECT name FROM events_between('job', epoch_ns_of('2020-08-05 22:57:05'),
--                                          epoch_ns_of('2020-08-05 22:57:06'));
CREATE OR REPLACE MACRO events_between(run_name, from_ns, until_ns, clock_name := 'epoch') AS TABLE
SELECT *
FROM events
WHERE
    run = run_name AND (clock_name IS NULL OR clock = clock_name)
    AND ts_ns <= COALESCE(until_ns, 9223372036854775807)
    AND end_ns >= COALESCE(from_ns, -9223372036854775807)
    AND (until_ns IS NULL OR hour <= partition_hour(until_ns, COALESCE(clock_name, clock)))
    AND hour >= (
        SELECT MIN(partition_hour(first_ns, clock))
        FROM _live_sources
        WHERE
            run = run_name AND (clock_name IS NULL OR clock = clock_name)
            AND first_ns <= COALESCE(until_ns, 9223372036854775807)
            AND last_ns >= COALESCE(from_ns, -9223372036854775807)
    )
UNION ALL
SELECT *
FROM events
WHERE
    run = run_name AND (clock_name IS NULL OR clock = clock_name)
    AND end_ns IS NULL
    AND ts_ns <= COALESCE(until_ns, 9223372036854775807)
    AND ts_ns >= COALESCE(from_ns, -9223372036854775807)
    AND (until_ns IS NULL OR hour <= partition_hour(until_ns, COALESCE(clock_name, clock)))
    AND (from_ns IS NULL OR hour >= partition_hour(from_ns, COALESCE(clock_name, clock)));

COMMENT ON MACRO TABLE events_between IS 'Events of a run that were under way in a range of time, both ends included.';
