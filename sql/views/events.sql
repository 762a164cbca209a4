-- Every event of every trace in the lake: slices, instants, async operations, flows.
-- Example: SELECT name, COUNT(*), SUM(dur_ns) / 1e6 AS ms FROM events
--          WHERE run = 'job' AND kind = 'slice' GROUP BY name ORDER BY ms DESC LIMIT 10;
-- The ledger comes first in the join: it is listed before the data files, so that a commit in
-- between shows nothing by halves. Its keys prune the partitions before they are opened.
CREATE OR REPLACE VIEW events AS
SELECT
    s.run, s.node, e.hour, e.ingest_id, e.seq, e.kind, e.ts_ns, e.dur_ns, e.end_ns, e.name,
    e.category, e.process_name, e.thread_name, e.pid, e.tid, e.rank, e.step, e.id, e.device,
    e.stream, e.correlation, e.external_id, e.bytes, e.args, s.clock
FROM _live_sources AS s
INNER JOIN _event_files AS e
    ON e.ingest_id = s.ingest_id AND e.run = s.run_key AND e.node = s.node_key;

COMMENT ON VIEW events IS 'Every event of every trace, one row each; a begin/end pair is one slice.';
COMMENT ON COLUMN events.run IS 'Training job the trace belongs to.';
COMMENT ON COLUMN events.node IS 'Machine the trace was taken on; node0 where it does not tell.';
COMMENT ON COLUMN events.hour IS 'UTC hour of the start, YYYY-MM-DDTHH; relative for clock trace. Partition.';
COMMENT ON COLUMN events.ingest_id IS 'The reading of the file that the row came from; key into sources.';
COMMENT ON COLUMN events.seq IS 'Ordinal of the event in its file; of the begin for a pair.';
COMMENT ON COLUMN events.kind IS 'slice, instant, async, async_instant, flow_start, flow_step, flow_end (at the slice it lies in), flow_end_next (at the slice that begins next), object, mark or other.';
COMMENT ON COLUMN events.ts_ns IS 'Start in nanoseconds since the epoch (clock epoch), or since the zero of the trace (clock trace).';
COMMENT ON COLUMN events.dur_ns IS 'Duration in nanoseconds; null for an unfinished slice, 0 for what has no length.';
COMMENT ON COLUMN events.end_ns IS 'End in nanoseconds, like ts_ns; null for an unfinished slice.';
COMMENT ON COLUMN events.name IS 'Name of the operation.';
COMMENT ON COLUMN events.category IS 'Category (cat), as kernel or cpu_op.';
COMMENT ON COLUMN events.process_name IS 'Name of the process track; the training phase in smdebug timelines.';
COMMENT ON COLUMN events.thread_name IS 'Name of the thread track.';
COMMENT ON COLUMN events.pid IS 'Process id as in the file; a text id has a stable id below -2^62.';
COMMENT ON COLUMN events.tid IS 'Thread id as in the file; a text id has a stable id below -2^62.';
COMMENT ON COLUMN events.rank IS 'Rank of the process in the distributed job, if known.';
COMMENT ON COLUMN events.step IS 'Training step the event itself names, if it does.';
COMMENT ON COLUMN events.id IS 'Id that joins the points of a flow or an async operation, with its scope and process where the trace tells such ids apart by them.';
COMMENT ON COLUMN events.device IS 'Accelerator number (args.device).';
COMMENT ON COLUMN events.stream IS 'Stream or queue on the accelerator (args.stream).';
COMMENT ON COLUMN events.correlation IS 'Joins a launch with what it launched (args.correlation).';
COMMENT ON COLUMN events.external_id IS 'Joins device activity with the operator above it (args."External id").';
COMMENT ON COLUMN events.bytes IS 'Bytes moved, allocated or freed (args.bytes).';
COMMENT ON COLUMN events.args IS 'All arguments as JSON, as they were written.';
COMMENT ON COLUMN events.clock IS 'epoch: ts_ns counts from 1970 in UTC; trace: from the zero of the trace.';
