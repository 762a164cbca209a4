-- The ledger for reading: the columns that tell what became of each file.
SELECT
    run, node, rank, format, clock, events_read, event_rows, metric_rows, metadata_events,
    paired_ends, unfinished, unmatched_ends, rejected, truncated, error, uri
FROM sources
ORDER BY run, uri
