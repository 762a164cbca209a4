-- What ran during these intervals: slices that share an instant with an interval, ends included,
-- by process and name. intervals: a list of {start_ns, end_ns}; they may overlap and repeat.
-- Columns: process_name, name, events (slices that met an interval), pairs (of a slice and an
-- interval), dur_ns (whole durations of the slices, once for each pair), overlap_ns (the time that
-- slice and interval share, over all pairs), both in nanoseconds.
-- Example: SELECT * FROM overlap_during('job', [{start_ns: 1596668225000000000,
--                                                end_ns: 1596668226000000000}]);
CREATE OR REPLACE MACRO overlap_during(run_name, intervals, clock_name := 'epoch') AS TABLE
SELECT process_name, name, events, pairs, dur_ns, overlap_ns
FROM _overlap(
    run_name,
    list_transform(intervals, lambda i: {
        node: NULL::VARCHAR, rank: NULL::INTEGER, start_ns: i.start_ns, end_ns: i.end_ns
    }),
    FALSE,
    clock_name
);

COMMENT ON MACRO TABLE overlap_during IS 'Slices that were under way during given intervals, by process and name.';
