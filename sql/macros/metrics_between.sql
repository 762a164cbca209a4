-- Which samples were taken from one instant to another, both included? Null for an end is no
-- bound; clock_name null takes both clocks.
-- Columns as in the view metrics.
-- Example: SELECT device, AVG(value) FROM metrics_between('job', 1596668225000000000,
--                                                         1596668226000000000) GROUP BY device;
CREATE OR REPLACE MACRO metrics_between(run_name, from_ns, until_ns, clock_name := 'epoch') AS TABLE
SELECT *
FROM metrics
WHERE
    run = run_name AND (clock_name IS NULL OR clock = clock_name)
    AND (
        from_ns IS NULL
        OR (ts_ns >= from_ns AND hour >= partition_hour(from_ns, COALESCE(clock_name, clock)))
    )
    AND (
        until_ns IS NULL
        OR (ts_ns <= until_ns AND hour <= partition_hour(until_ns, COALESCE(clock_name, clock)))
    );

COMMENT ON MACRO TABLE metrics_between IS 'Samples of a run in a range of time, both ends included.';
