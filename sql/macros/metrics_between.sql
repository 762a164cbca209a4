-- Which samples were taken from one instant to another, both included.
-- Columns as in the view metrics.
-- Example: SELECT device, AVG(value) FROM metrics_between('job', 1596668225000000000,
--                                                         1596668226000000000) GROUP BY device;
CREATE OR REPLACE MACRO metrics_between(run_name, from_ns, until_ns, clock_name := 'epoch') AS TABLE
SELECT *
FROM metrics
WHERE
    run = run_name AND clock = clock_name
    AND ts_ns BETWEEN from_ns AND until_ns
    AND hour BETWEEN partition_hour(from_ns, clock_name) AND partition_hour(until_ns, clock_name);

COMMENT ON MACRO TABLE metrics_between IS 'Samples of a run in a range of time, both ends included.';
