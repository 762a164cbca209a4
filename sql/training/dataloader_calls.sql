-- What the data loaders did: setting up iterators, the lives of workers, and calls for the next
-- batch. Found by the names that smdebug, torch.profiler, TensorFlow and Composer give them.
-- Example: SELECT activity, COUNT(*), MEDIAN(dur_ns) / 1e6 AS ms FROM dataloader_calls
--          WHERE run = 'job' GROUP BY activity;
CREATE OR REPLACE VIEW dataloader_calls AS
WITH found AS (
    SELECT
        *,
        CASE
            WHEN regexp_matches(name, '_(Multi|Single)Process(ing)?DataLoaderIter\.__init__$')
                OR process_name = 'DataLoaderIterInitialize'
                THEN 'iterator'
            WHEN contains(name, 'DataLoaderWorker') OR process_name = 'DataLoaderWorker'
                THEN 'worker'
            WHEN ends_with(name, 'DataLoaderIter::GetNext')
                OR regexp_matches(name, '^enumerate\(DataLoader\)#.*\.__next__$')
                OR starts_with(name, 'dataloader/') OR process_name = 'DataIterator'
                THEN 'get_next'
        END AS activity
    FROM events
    WHERE
        kind = 'slice'
        AND (
            contains(name, 'DataLoader') OR starts_with(name, 'dataloader/')
            OR process_name IN ('DataIterator', 'DataLoaderIterInitialize', 'DataLoaderWorker')
        )
)

SELECT
    run, node, rank, activity, process_name, name,
    COALESCE(TRY_CAST(args->>'pid' AS BIGINT), pid) AS pid, tid, ts_ns, dur_ns, end_ns,
    TRY_CAST(args->>'worker_id' AS BIGINT) AS worker_id,
    TRY_CAST(args->>'num_workers' AS BIGINT) AS num_workers,
    TRY_CAST(args->>'pin_memory' AS BOOLEAN) AS pin_memory,
    clock, ingest_id, seq
FROM found
WHERE activity IS NOT NULL;

COMMENT ON VIEW dataloader_calls IS 'What the data loaders did, one row a call, worker or iterator.';
COMMENT ON COLUMN dataloader_calls.run IS 'Training job.';
COMMENT ON COLUMN dataloader_calls.node IS 'Machine it ran on.';
COMMENT ON COLUMN dataloader_calls.rank IS 'Rank of the process, if known.';
COMMENT ON COLUMN dataloader_calls.activity IS 'iterator (its set-up), worker (its life) or get_next (a call for a batch).';
COMMENT ON COLUMN dataloader_calls.process_name IS 'Name of the process track, as in events.';
COMMENT ON COLUMN dataloader_calls.name IS 'Name of the operation, as in events.';
COMMENT ON COLUMN dataloader_calls.pid IS 'Process: args.pid where the trace gives it, else the pid of the event.';
COMMENT ON COLUMN dataloader_calls.tid IS 'Thread, as in events.';
COMMENT ON COLUMN dataloader_calls.ts_ns IS 'Start in nanoseconds, as in events.';
COMMENT ON COLUMN dataloader_calls.dur_ns IS 'Duration in nanoseconds; null if it never ended.';
COMMENT ON COLUMN dataloader_calls.end_ns IS 'End in nanoseconds; null if it never ended.';
COMMENT ON COLUMN dataloader_calls.worker_id IS 'Number of the worker, where the trace gives it.';
COMMENT ON COLUMN dataloader_calls.num_workers IS 'Workers of the iterator, where the trace gives it.';
COMMENT ON COLUMN dataloader_calls.pin_memory IS 'Whether batches are copied to pinned memory, where the trace gives it.';
COMMENT ON COLUMN dataloader_calls.clock IS 'epoch or trace, as in events.';
COMMENT ON COLUMN dataloader_calls.ingest_id IS 'The reading of the file; key into sources.';
COMMENT ON COLUMN dataloader_calls.seq IS 'Ordinal in the file.';
