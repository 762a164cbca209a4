-- Events of one run by start. $run: its name; $from, $until: nanoseconds, both included, null for
-- no bound; $clock: epoch, trace or null for both; $kinds, $names, $processes: lists of what is
-- taken, null for all; $uris: endings of the names of files, null for all.
-- Columns as in the view events.
SELECT *
FROM events_between($run, $from, $until, clock_name := $clock)
WHERE
    ($kinds IS NULL OR list_contains($kinds, kind))
    AND ($names IS NULL OR list_contains($names, name))
    AND ($processes IS NULL OR list_contains($processes, process_name))
    AND (
        $uris IS NULL
        OR ingest_id IN (
            SELECT ingest_id
            FROM sources
            WHERE run = $run AND list_bool_or(list_transform($uris, lambda u: ends_with(uri, u)))
        )
    )
ORDER BY ts_ns, ingest_id, seq
