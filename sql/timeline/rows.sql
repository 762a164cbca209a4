-- An id of a flow or an async operation, made unique among the files. Viewers read the id of a flow
-- as a number: 32 bits of it are the file's own, those above its ordinal.
CREATE OR REPLACE TEMP MACRO timeline_id(ordinal, id) AS CASE
    WHEN ordinal = 0 OR id IS NULL THEN id
    WHEN regexp_full_match(id, '0|[1-9][0-9]{0,8}')
        THEN (ordinal * 4294967296 + id::BIGINT)::VARCHAR
    WHEN regexp_full_match(id, '0x(0|[1-9a-f][0-9a-f]{0,7})')
        THEN lower(concat('0x', to_hex(ordinal), lpad(id[3:], 8, '0')))
    ELSE concat(ordinal, '-', id)
END;

-- Arguments as JSON has them: a number that is none, as Python writes them, becomes a text. Texts
-- and such numbers are marked first, so that no text is changed.
CREATE OR REPLACE TEMP MACRO timeline_args(args) AS CASE
    WHEN NOT regexp_matches(args, 'NaN|Infinity') THEN args
    ELSE replace(replace(
        regexp_replace(
            args, '("(?:[^"\\]|\\.)*")|(-?(?:NaN|Infinity))', '\1' || chr(1) || '\2' || chr(1), 'g'
        ),
        chr(1) || chr(1), ''
    ), chr(1), '"')
END;

-- The events of a merged timeline, as in the view events, with process_key, which tells processes
-- apart: by node, rank and name, and by number where the file means it; and with their id made
-- unique among the files, whose ordinal and owner are there too.
CREATE OR REPLACE TEMP MACRO timeline_events(run_name, from_ns, until_ns, clock_name) AS TABLE
SELECT
    e.* REPLACE (timeline_id(c.ordinal, e.id) AS id),
    c.ordinal, c.owner,
    CASE WHEN NOT c.is_by_name OR e.process_name IS NULL THEN e.pid END AS own_pid,
    concat(e.node, chr(0), e.rank, chr(0), e.process_name, chr(0), own_pid) AS process_key
FROM events_between(run_name, from_ns, until_ns, clock_name := clock_name) AS e
INNER JOIN timeline_sources AS c ON c.ingest_id = e.ingest_id;

-- The samples of a merged timeline that are numbers, each with the counter it belongs to.
CREATE OR REPLACE TEMP MACRO timeline_samples(run_name, from_ns, until_ns, clock_name) AS TABLE
SELECT
    ingest_id, seq, ts_ns, node, rank, device, metric, value,
    concat(node, chr(0), rank, chr(0), 'system metrics') AS process_key,
    CASE
        WHEN resource = 'counter' THEN device ELSE concat_ws(' ', device, metric)
    END AS counter,
    CASE WHEN resource = 'counter' THEN metric ELSE 'value' END AS series
FROM metrics_between(run_name, from_ns, until_ns, clock_name := clock_name)
WHERE value IS NOT NULL AND NOT isnan(value) AND NOT isinf(value)
