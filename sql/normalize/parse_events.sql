-- Reads lines (one trace event each) into parsed. lines: file_no, seq, byte_offset, head (the
-- event's JSON without the value of args), args (that value as written, null if no object).
-- $quick: the lines were cut by pattern, so an args key still in head means a wrong cut.
-- Microseconds go through DECIMAL text to whole nanoseconds, half away from zero.
INSERT INTO parsed
WITH heads AS (
    SELECT
        file_no, seq, byte_offset, head, args,
        TRY(from_json(head, '{"ph": "VARCHAR", "name": "VARCHAR", "cat": "VARCHAR",
            "ts": "DECIMAL(28,3)", "dur": "DECIMAL(28,3)", "pid": "VARCHAR", "tid": "VARCHAR",
            "id": "VARCHAR", "id2": "JSON", "scope": "VARCHAR", "s": "VARCHAR",
            "bp": "VARCHAR", "args": "JSON"}')) AS h,
        TRY(len(json_keys(head))) AS key_count
    FROM lines
),

-- Where the splitter could not lift args out, head still has them (a repaired event).
whole AS (
    SELECT
        * EXCLUDE (args),
        args IS NOT NULL AS lifted,
        COALESCE(args, CASE WHEN NOT $quick THEN h.args END) AS args
    FROM heads
),

fields AS (
    SELECT
        *,
        TRY(json_extract_string(args, [
            'step_num', 'batch', 'device', 'Device Id', 'stream', 'correlation', 'External id',
            'external id', 'bytes', 'Bytes', 'name', 'start_time_since_epoch_in_micros'
        ])) AS a
    FROM whole
),

checked AS (
    SELECT
        *,
        CASE
            WHEN h IS NULL OR key_count IS NULL THEN 'broken'
            WHEN lifted AND a IS NULL THEN 'broken'
            WHEN $quick AND h.args IS NOT NULL THEN 'broken'
            WHEN
                key_count <> (h.ph IS NOT NULL)::INT + (h.name IS NOT NULL)::INT
                + (h.cat IS NOT NULL)::INT + (h.ts IS NOT NULL)::INT
                + (h.dur IS NOT NULL)::INT + (h.pid IS NOT NULL)::INT
                + (h.tid IS NOT NULL)::INT + (h.id IS NOT NULL)::INT
                + (h.s IS NOT NULL)::INT + (h.bp IS NOT NULL)::INT
                + (h.args IS NOT NULL)::INT
                AND len(list_distinct(json_keys(head))) < key_count THEN 'twice'
            WHEN key_count = 0 THEN 'empty'
        END AS status,
        TRY_CAST(h.ts * 1000 AS BIGINT) AS ts_ns,
        TRY_CAST(h.dur * 1000 AS BIGINT) AS dur_ns,
        TRY_CAST(h.pid AS BIGINT) AS pid_number,
        TRY_CAST(h.tid AS BIGINT) AS tid_number
    FROM fields
)

SELECT
    file_no, seq, byte_offset, status,
    CASE
        WHEN status IS NOT NULL THEN NULL
        WHEN h.ph IS NULL THEN 'no phase (ph)'
        WHEN h.ph = 'M' THEN NULL
        WHEN ts_ns IS NULL THEN 'no usable timestamp (ts)'
        WHEN h.ph = 'X' AND dur_ns < 0 THEN 'negative duration (dur)'
    END AS reject,
    h.ph, h.name, h.cat, ts_ns, dur_ns,
    COALESCE(pid_number, text_id(h.pid)), COALESCE(tid_number, text_id(h.tid)),
    CASE WHEN pid_number IS NULL AND TRY_CAST(h.pid AS UBIGINT) IS NULL THEN h.pid END,
    CASE WHEN tid_number IS NULL AND TRY_CAST(h.tid AS UBIGINT) IS NULL THEN h.tid END,
    COALESCE(h.id, h.id2 ->> 'global', h.id2 ->> 'local'),
    CASE
        WHEN (h.id2 ->> 'local') IS NOT NULL THEN concat_ws(' ', h.scope, 'pid', h.pid)
        ELSE h.scope
    END,
    TRY_CAST(a[1] AS BIGINT), TRY_CAST(a[2] AS BIGINT),
    TRY_CAST(COALESCE(a[3], a[4]) AS INTEGER), TRY_CAST(a[5] AS BIGINT),
    TRY_CAST(a[6] AS BIGINT), TRY_CAST(COALESCE(a[7], a[8]) AS BIGINT),
    TRY_CAST(COALESCE(a[9], a[10]) AS BIGINT),
    CASE WHEN h.ph = 'M' THEN a[11] END,
    CASE WHEN h.ph = 'M' THEN TRY_CAST(a[12] AS BIGINT) END,
    args
FROM checked;
