-- Recounts the ledger from the Parquet; one row a difference: uri, what, ledger, parquet.
WITH event_counts AS (
    SELECT
        ingest_id, COUNT(*) AS event_rows, COUNT(DISTINCT seq) AS distinct_seqs,
        COUNT(*) FILTER (kind IN ('slice', 'async') AND dur_ns IS NULL) AS unfinished,
        MIN(ts_ns) AS first_ns, MAX(COALESCE(end_ns, ts_ns)) AS last_ns
    FROM events
    GROUP BY ingest_id
),

metric_counts AS (
    SELECT
        ingest_id, COUNT(*) AS metric_rows, COUNT(DISTINCT seq) AS counters,
        MIN(ts_ns) AS first_ns, MAX(ts_ns) AS last_ns
    FROM metrics
    GROUP BY ingest_id
),

checks AS (
    SELECT
        s.uri,
        UNNEST([
            {
                what: 'event_rows',
                ledger: s.event_rows, parquet: COALESCE(e.event_rows, 0)
            }, {
                what: 'distinct events',
                ledger: s.event_rows, parquet: COALESCE(e.distinct_seqs, 0)
            }, {
                what: 'unfinished',
                ledger: s.unfinished, parquet: COALESCE(e.unfinished, 0)
            }, {
                what: 'metric_rows',
                ledger: s.metric_rows, parquet: COALESCE(m.metric_rows, 0)
            }, {
                -- A counter without series has no row.
                what: 'counter_events (at most)',
                ledger: s.counter_events,
                parquet: GREATEST(s.counter_events, COALESCE(m.counters, 0))
            }, {
                what: 'first_ns',
                ledger: s.first_ns, parquet: LEAST(e.first_ns, m.first_ns)
            }, {
                what: 'last_ns',
                ledger: s.last_ns, parquet: GREATEST(e.last_ns, m.last_ns)
            }, {
                what: 'events_read = event_rows + counter_events + metadata_events '
                    || '+ paired_ends + unmatched_ends + rejected',
                ledger: s.events_read,
                parquet: COALESCE(e.event_rows, 0) + s.counter_events + s.metadata_events
                    + s.paired_ends + s.unmatched_ends + s.rejected
            }
        ]) AS c
    FROM _live_sources AS s
    LEFT JOIN event_counts AS e ON e.ingest_id = s.ingest_id
    LEFT JOIN metric_counts AS m ON m.ingest_id = s.ingest_id
)

SELECT uri, c.what, c.ledger, c.parquet
FROM checks
WHERE c.ledger IS DISTINCT FROM c.parquet
ORDER BY uri, c.what
