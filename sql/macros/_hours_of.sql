-- Which partitions hold what of a run was under way during some times: first_hour (of the earliest
-- file that reaches into them) and last_hour. times: a list of nanoseconds, of which the least and
-- the greatest count. What is compared with them by itself, in a scalar subquery, lets DuckDB leave
-- out files.
CREATE OR REPLACE MACRO _hours_of(run_name, times, clock_name) AS TABLE
SELECT
    MIN(partition_hour(s.first_ns, clock_name)) AS first_hour,
    ANY_VALUE(partition_hour(t.last_ns, clock_name)) AS last_hour
FROM _live_sources AS s, (SELECT list_min(times) AS first_ns, list_max(times) AS last_ns) AS t
WHERE
    s.run = run_name AND s.clock = clock_name
    AND s.first_ns <= t.last_ns AND s.last_ns >= t.first_ns;
