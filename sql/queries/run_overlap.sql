-- What ran during intervals; columns as in overlap_during. $run: its name; $starts, $ends:
-- nanoseconds, lists of one length; $clock: epoch or trace.
FROM overlap_during(
    $run,
    list_transform(
        list_zip($starts::BIGINT[], $ends::BIGINT[]), lambda p: {start_ns: p[1], end_ns: p[2]}
    ),
    clock_name := $clock
)
