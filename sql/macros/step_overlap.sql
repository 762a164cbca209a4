-- What ran during steps, from first_step up to, but without, until_step: each step counts for the
-- slices of its own node and rank. Steps that never ended count for nothing.
-- Columns as in overlap_during.
-- Example: SELECT * FROM step_overlap('job', 10, 12);
CREATE OR REPLACE MACRO step_overlap(
    run_name, first_step, until_step, clock_name := 'epoch'
) AS TABLE
SELECT process_name, name, events, pairs, dur_ns, overlap_ns
FROM _overlap(
    run_name,
    (
        SELECT LIST({node: node, rank: rank, start_ns: start_ns, end_ns: end_ns})
        FROM steps
        WHERE
            run = run_name AND clock = clock_name AND complete
            AND step >= first_step AND step < until_step
    ),
    TRUE,
    clock_name
);

COMMENT ON MACRO TABLE step_overlap IS 'Slices that were under way during a range of steps, by process and name.';
