-- The files that a merged timeline takes its events from: ingest_id, is_by_name, ordinal (0 where
-- there is one file only), owner (the process that wrote it, where its name says so).
-- $run: its name; $from, $until: nanoseconds, both included, null for no bound; $clock: epoch or
-- trace; $uris: endings of their names, null for all.
CREATE OR REPLACE TEMP TABLE timeline_sources AS
SELECT
    ingest_id,
    -- Processes of smdebug and horovod are phases and tensors, whatever their number.
    format IN ('smdebug', 'horovod') AS is_by_name,
    CASE
        WHEN format = 'smdebug'
            THEN NULLIF(regexp_extract(uri, '(^|/)[0-9]+_([0-9]+)-[^/]*$', 2), '')
    END AS owner,
    CASE WHEN COUNT(*) OVER () > 1 THEN DENSE_RANK() OVER (ORDER BY uri) ELSE 0 END AS ordinal
FROM sources
WHERE
    run = $run AND clock = $clock AND event_rows > 0
    AND first_ns <= COALESCE($until, 9223372036854775807)
    AND last_ns >= COALESCE($from, -9223372036854775807)
    AND ($uris IS NULL OR list_bool_or(list_transform($uris, lambda u: ends_with(uri, u))))
