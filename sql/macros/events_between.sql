-- Which events were under way at any time from one instant to another, both included. An
-- unfinished slice counts at its start. The hour of the earliest file that reaches into the range
-- bounds the partitions that are read.
-- Columns as in the view events.
-- Example: SELECT name FROM events_between('job', epoch_ns_of('2020-08-05 22:57:05'),
--                                          epoch_ns_of('2020-08-05 22:57:06'));
CREATE OR REPLACE MACRO events_between(run_name, from_ns, until_ns, clock_name := 'epoch') AS TABLE
SELECT *
FROM events
WHERE
    run = run_name AND clock = clock_name
    AND ts_ns <= until_ns AND COALESCE(end_ns, ts_ns) >= from_ns
    AND hour <= partition_hour(until_ns, clock_name)
    AND hour >= (
        SELECT MIN(partition_hour(first_ns, clock_name))
        FROM _live_sources
        WHERE
            run = run_name AND clock = clock_name
            AND first_ns <= until_ns AND last_ns >= from_ns
    );

COMMENT ON MACRO TABLE events_between IS 'Events of a run that were under way in a range of time, both ends included.';
