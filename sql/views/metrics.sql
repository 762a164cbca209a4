-- Every sample of every system metric and counter in the lake.
-- Example: SELECT device, AVG(value) FROM metrics
--          WHERE run = 'job' AND metric = 'GPUUtilization' GROUP BY device;
CREATE OR REPLACE VIEW metrics AS
SELECT
    s.run, s.node, m.hour, m.ingest_id, m.seq, m.ts_ns, m.resource, m.device, m.metric, m.value,
    m.unit, m.rank, s.clock
FROM _live_sources AS s
INNER JOIN _metric_files AS m
    ON m.ingest_id = s.ingest_id AND m.run = s.run_key AND m.node = s.node_key;

COMMENT ON VIEW metrics IS 'Every sample of system metrics and of counters in traces, one row each.';
COMMENT ON COLUMN metrics.run IS 'Training job the sample belongs to.';
COMMENT ON COLUMN metrics.node IS 'Machine the sample was taken on.';
COMMENT ON COLUMN metrics.hour IS 'UTC hour, YYYY-MM-DDTHH; relative for clock trace. Partition.';
COMMENT ON COLUMN metrics.ingest_id IS 'The reading of the file that the row came from; key into sources.';
COMMENT ON COLUMN metrics.seq IS 'Ordinal of the line or counter event in its file.';
COMMENT ON COLUMN metrics.ts_ns IS 'Time in nanoseconds since the epoch, or since the zero of the trace (clock trace).';
COMMENT ON COLUMN metrics.resource IS 'cpu, gpu, memory, disk, network; counter for a counter in a trace.';
COMMENT ON COLUMN metrics.device IS 'Which one: cpu0, gpu1, eth0; the name of the counter.';
COMMENT ON COLUMN metrics.metric IS 'What was measured, as GPUUtilization; the series of the counter.';
COMMENT ON COLUMN metrics.value IS 'The sample; null where the writer had no number (a gap).';
COMMENT ON COLUMN metrics.unit IS 'Unit of value where it is known: percent, bytes, bytes/s, milliseconds, count, operations/s, …, as the source says.';
COMMENT ON COLUMN metrics.rank IS 'Rank of the process in the distributed job, if known.';
COMMENT ON COLUMN metrics.clock IS 'epoch or trace, as in events.';
