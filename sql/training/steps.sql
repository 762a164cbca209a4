-- Every training step: where it starts and ends, on each machine and rank.
-- Steps of smdebug are its Step:ModeKeys.* slices, of Kineto ProfilerStep#N on the host, of
-- Composer event/batch and event/eval_batch, of TensorFlow the slices of a host with step_num, and
-- the Steps line of a device. Slices of one step on one machine and rank that overlap (of several
-- workers) make one interval, from the first start to the last end; a number that comes again
-- later, as where a job went on from a checkpoint, is a row of its own.
-- Example: SELECT step, dur_ns / 1e6 AS ms FROM steps WHERE run = 'job' ORDER BY dur_ns DESC;
CREATE OR REPLACE VIEW steps AS
WITH markers AS (
    SELECT
        run, node, rank, clock, ts_ns, end_ns, step,
        CASE WHEN clock = 'trace' THEN ingest_id END AS ingest_id,
        CASE
            WHEN starts_with(name, 'Step:') THEN regexp_replace(name, '^Step:(ModeKeys\.)?', '')
            -- The copy on the GPU spans its kernels, not the step.
            WHEN starts_with(name, 'ProfilerStep#')
                AND category IS DISTINCT FROM 'gpu_user_annotation'
                THEN 'ProfilerStep'
            WHEN name = 'event/batch' THEN 'TRAIN'
            WHEN name = 'event/eval_batch' THEN 'EVAL'
            WHEN starts_with(process_name, '/host:') THEN name
            WHEN thread_name = 'Steps' AND starts_with(process_name, '/device:') THEN 'device'
        END AS mode
    FROM events
    WHERE
        kind = 'slice' AND step IS NOT NULL
        AND (
            starts_with(name, 'Step:') OR starts_with(name, 'ProfilerStep#')
            OR name IN ('event/batch', 'event/eval_batch')
            OR starts_with(process_name, '/host:')
            OR (thread_name = 'Steps' AND starts_with(process_name, '/device:'))
        )
),

comings AS (
    SELECT *, SUM(is_new) OVER (
        PARTITION BY run, node, rank, mode, step, clock, ingest_id ORDER BY ts_ns
    ) AS coming
    FROM (
        SELECT
            *,
            COALESCE(ts_ns > MAX(COALESCE(end_ns, ts_ns)) OVER (
                PARTITION BY run, node, rank, mode, step, clock, ingest_id ORDER BY ts_ns
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), TRUE)::BIGINT AS is_new
        FROM markers
        WHERE mode IS NOT NULL
    )
)

SELECT
    run, node, rank, mode, step,
    MIN(ts_ns) AS start_ns,
    CASE WHEN BOOL_AND(end_ns IS NOT NULL) THEN MAX(end_ns) END AS end_ns,
    CASE WHEN BOOL_AND(end_ns IS NOT NULL) THEN MAX(end_ns) - MIN(ts_ns) END AS dur_ns,
    BOOL_AND(end_ns IS NOT NULL) AS complete,
    COUNT(*) AS slices,
    clock, ingest_id
FROM comings
GROUP BY run, node, rank, mode, step, clock, ingest_id, coming;

COMMENT ON VIEW steps IS 'Every training step, one row each time that it ran on a node and rank, by mode.';
COMMENT ON COLUMN steps.run IS 'Training job.';
COMMENT ON COLUMN steps.node IS 'Machine the step ran on.';
COMMENT ON COLUMN steps.rank IS 'Rank of the process, if known.';
COMMENT ON COLUMN steps.mode IS 'TRAIN, EVAL, GLOBAL; ProfilerStep for Kineto; the name of the marker for TensorFlow.';
COMMENT ON COLUMN steps.step IS 'Number of the step.';
COMMENT ON COLUMN steps.start_ns IS 'Start in nanoseconds, on the clock of the row.';
COMMENT ON COLUMN steps.end_ns IS 'End in nanoseconds; null for a step that never ended.';
COMMENT ON COLUMN steps.dur_ns IS 'Duration in nanoseconds; null for a step that never ended.';
COMMENT ON COLUMN steps.complete IS 'Whether all its slices ended.';
COMMENT ON COLUMN steps.slices IS 'Slices that the interval is made of; more than one where workers share a rank.';
COMMENT ON COLUMN steps.clock IS 'epoch or trace, as in events.';
COMMENT ON COLUMN steps.ingest_id IS 'The file, for clock trace, whose times compare with no other; null for clock epoch.';
