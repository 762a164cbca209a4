-- The ledger: every file whose content is in the lake, and every file that could not be read.
-- events_read = event_rows + counter_events + metadata_events + paired_ends + unmatched_ends
--             + rejected.
-- Example: SELECT uri, events_read, rejected FROM sources WHERE rejected > 0;
CREATE OR REPLACE VIEW sources AS
SELECT
    ingest_id, version, run, node, rank, uri, format, size_bytes, fingerprint, batch_id,
    committed_at, clock, base_ns, first_ns, last_ns, events_read, events_by_phase, event_rows,
    metric_rows, metadata_events, counter_events, paired_ends, unfinished, unmatched_ends,
    rejected, empty_events, truncated, repairs, rejects, metadata::JSON AS metadata, error
FROM _shown_sources;

COMMENT ON VIEW sources IS 'The ledger: one row a file, with what became of all its events.';
COMMENT ON COLUMN sources.ingest_id IS 'Id of this reading of the file; the key of its rows.';
COMMENT ON COLUMN sources.version IS 'Order of readings: of one uri the highest version counts.';
COMMENT ON COLUMN sources.run IS 'Training job.';
COMMENT ON COLUMN sources.node IS 'Machine the file is from.';
COMMENT ON COLUMN sources.rank IS 'Rank of the process, if known.';
COMMENT ON COLUMN sources.uri IS 'Where the file was read from.';
COMMENT ON COLUMN sources.format IS 'smdebug, tensorflow, horovod, kineto, composer, system or chrome.';
COMMENT ON COLUMN sources.size_bytes IS 'Size of the file as stored, in bytes.';
COMMENT ON COLUMN sources.fingerprint IS 'Etag, or size and time of change: another one means that the file changed.';
COMMENT ON COLUMN sources.batch_id IS 'Names the data files that its rows were written to.';
COMMENT ON COLUMN sources.committed_at IS 'When its rows became visible.';
COMMENT ON COLUMN sources.clock IS 'epoch or trace, as in events.';
COMMENT ON COLUMN sources.base_ns IS 'Nanoseconds that were added to the timestamps of the file.';
COMMENT ON COLUMN sources.first_ns IS 'Earliest start of its rows in nanoseconds.';
COMMENT ON COLUMN sources.last_ns IS 'Latest end of its rows in nanoseconds.';
COMMENT ON COLUMN sources.events_read IS 'Events (or metric lines) in the file, the rejected ones among them.';
COMMENT ON COLUMN sources.events_by_phase IS 'Readable events by phase letter; sample for metric lines.';
COMMENT ON COLUMN sources.event_rows IS 'Rows in events.';
COMMENT ON COLUMN sources.metric_rows IS 'Rows in metrics.';
COMMENT ON COLUMN sources.metadata_events IS 'Events that name processes and threads (phase M).';
COMMENT ON COLUMN sources.counter_events IS 'Counter events and metric lines, which became rows in metrics.';
COMMENT ON COLUMN sources.paired_ends IS 'Ends that were folded into the slice of their begin.';
COMMENT ON COLUMN sources.unfinished IS 'Slices without an end or a usable duration.';
COMMENT ON COLUMN sources.unmatched_ends IS 'Ends that no begin was found for.';
COMMENT ON COLUMN sources.rejected IS 'Pieces that are no readable event.';
COMMENT ON COLUMN sources.empty_events IS 'Nulls and empty objects among the events, which count as none.';
COMMENT ON COLUMN sources.truncated IS 'Whether the file ends before its document does.';
COMMENT ON COLUMN sources.repairs IS 'What was put right in the structure of the document.';
COMMENT ON COLUMN sources.rejects IS 'The first 100 rejected pieces: byte_offset, reason, and their first bytes.';
COMMENT ON COLUMN sources.metadata IS 'The other keys of the document.';
COMMENT ON COLUMN sources.error IS 'Why the file could not be read; null for all others.';
