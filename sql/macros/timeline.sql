-- Everything in a range of time on one line: events that were under way, and samples.
-- Null for an end is no bound; both ends are included.
-- Columns: ts_ns, dur_ns, end_ns, node, rank, kind (as in events, or sample), process_name,
-- thread_name, name (of a sample: its device and metric), value (of a sample), args, clock.
-- Example: SELECT * FROM timeline('job', 1596668225000000000, 1596668226000000000) ORDER BY ts_ns;
CREATE OR REPLACE MACRO timeline(run_name, from_ns, until_ns, clock_name := 'epoch') AS TABLE
SELECT
    ts_ns, dur_ns, end_ns, node, rank, kind, process_name, thread_name, name,
    NULL::DOUBLE AS value, args, clock
FROM events_between(run_name, from_ns, until_ns, clock_name := clock_name)
UNION ALL
SELECT
    ts_ns, 0, ts_ns, node, rank, 'sample', resource, device, concat_ws(' ', device, metric),
    value, NULL, clock
FROM metrics_between(run_name, from_ns, until_ns, clock_name := clock_name);

COMMENT ON MACRO TABLE timeline IS 'Events and samples of a run in a range of time, on one line.';
