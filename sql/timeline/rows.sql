-- An id of a flow or an async operation, made unique among the files. Viewers read the id of a flow
-- as a number: 32 bits of it are the file's own, those above its ordinal.
CREATE OR REPLACE TEMP MACRO timeline_id(ordinal, id) AS CASE
    WHEN ordinal = 0 THEN id
    WHEN regexp_full_match(id, '0|[1-9][0-9]{0,8}')
        THEN (ordinal * 4294967296 + id::BIGINT)::VARCHAR
    WHEN regexp_full_match(id, '0x(0|[1-9a-f][0-9a-f]{0,7})')
        THEN lower(concat('0x', to_hex(ordinal), lpad(id[3:], 8, '0')))
    ELSE concat(ordinal, '-', id)
END;

-- The events of a merged timeline, as in the view events, with process_key, which tells processes
-- apart: by node, rank and name, and by number where the file means it; and with their id made
-- unique among the files, whose ordinal is there too.
CREATE OR REPLACE TEMP MACRO timeline_events(run_name, from_ns, until_ns, clock_name) AS TABLE
SELECT
    e.* REPLACE (timeline_id(c.ordinal, e.id) AS id),
    c.ordinal,
    CASE WHEN NOT c.is_by_name OR e.process_name IS NULL THEN e.pid END AS own_pid,
    concat(e.node, chr(0), e.rank, chr(0), e.process_name, chr(0), own_pid) AS process_key
FROM events_between(run_name, from_ns, until_ns, clock_name := clock_name) AS e
INNER JOIN timeline_sources AS c ON c.ingest_id = e.ingest_id;

-- The samples of a merged timeline that are numbers, each with the counter it belongs to.
CREATE OR REPLACE TEMP MACRO timeline_samples(run_name, from_ns, until_ns, clock_name) AS TABLE
SELECT
    ingest_id, seq, ts_ns, node, device, metric, value,
    concat(node, chr(0), 'system metrics') AS process_key,
    CASE
        WHEN resource = 'counter' THEN device ELSE concat_ws(' ', device, metric)
    END AS counter,
    CASE WHEN resource = 'counter' THEN metric ELSE 'value' END AS series
FROM metrics_between(run_name, from_ns, until_ns, clock_name := clock_name)
WHERE value IS NOT NULL AND NOT isnan(value) AND NOT isinf(value)
