-- Reads lines (one trace event each). lines: file_no, seq, head (the event's JSON without the
-- value of args), args (that value as written, null if no object). $quick: the lines were cut by
-- pattern, so an args key still in head means a wrong cut.
-- Microseconds go through DECIMAL text to whole nanoseconds, half away from zero.
-- Columns: those of parsed (tables.sql), then is_plain: what becomes of the event is certain,
-- whatever else the document holds. So its time is far from where a clock's base could take it
-- out of BIGINT.
WITH heads AS (
    SELECT
        file_no, seq, head, args,
        TRY(head_fields(head)) AS h
    FROM lines
),

-- Where the splitter could not lift args out, head still has them (a repaired event).
whole AS (
    SELECT
        * EXCLUDE (args),
        CASE WHEN h IS NOT NULL THEN len(json_keys(head)) END AS key_count,
        args IS NOT NULL AS lifted,
        COALESCE(args, CASE WHEN NOT $quick THEN h.args END) AS args
    FROM heads
),

arguments AS (
    SELECT *, TRY(args_fields(args)) AS a FROM whole
),

-- Other spellings are those of events that have no "External id".
fields AS (
    SELECT
        *,
        CASE WHEN a."External id" IS NULL THEN TRY(other_args_fields(args)) END AS o
    FROM arguments
),

checked AS (
    SELECT
        *,
        CASE
            WHEN h IS NULL THEN 'broken'
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
        -- What is no BIGINT is looked at as text; few events have such ids, or none at all.
        CASE
            WHEN h IS NOT NULL AND h.pid IS NULL THEN json_extract_string(head, 'pid')
        END AS pid_text,
        CASE
            WHEN h IS NOT NULL AND h.tid IS NULL THEN json_extract_string(head, 'tid')
        END AS tid_text,
        -- Keys that the fields above do not cover.
        CASE
            WHEN status IS NULL AND h.ph NOT IN ('X', 'B', 'E', 'M', 'C', 'i', 'I')
                THEN json_extract_string(head, ['$.id2.global', '$.id2.local', '$.scope'])
        END AS scoped
    FROM fields
),

decided AS (
    SELECT
        *,
        COALESCE(h.id, scoped[1], scoped[2]) AS own_id,
        -- An id2.local is the process's own.
        CASE WHEN scoped[2] IS NOT NULL THEN COALESCE(h.pid::VARCHAR, pid_text) END AS owner,
        CASE
            WHEN status IS NOT NULL THEN NULL
            WHEN h.ph IS NULL THEN 'no phase (ph)'
            WHEN h.ph = 'M' THEN NULL
            WHEN ts_ns IS NULL THEN 'no usable timestamp (ts)'
            WHEN h.ph = 'X' AND dur_ns < 0 THEN 'negative duration (dur)'
        END AS reject
    FROM checked
)

SELECT
    file_no, seq, status, reject,
    -- As lines.FLOW_END_NEXT.
    CASE WHEN h.ph = 'f' AND h.bp IS DISTINCT FROM 'e' THEN 'f>' ELSE h.ph END AS ph,
    h.name AS name, h.cat AS category, ts_ns, dur_ns,
    COALESCE(h.pid, text_id(pid_text)) AS pid, COALESCE(h.tid, text_id(tid_text)) AS tid,
    CASE WHEN TRY_CAST(pid_text AS UBIGINT) IS NULL THEN pid_text END AS pid_text,
    CASE WHEN TRY_CAST(tid_text AS UBIGINT) IS NULL THEN tid_text END AS tid_text,
    CASE
        WHEN h.ph NOT IN ('b', 'e', 'n', 'S', 'F', 'T', 'p') THEN own_id
        -- With what else tells async operations apart, so that equal ids are one operation's.
        WHEN own_id IS NOT NULL THEN concat_ws(' ', own_id, scoped[3], 'pid ' || owner)
        ELSE scoped[3]
    END AS id,
    a.step_num AS step_num, a.batch AS batch,
    COALESCE(a.device, o."Device Id") AS device, a.stream AS stream,
    a.correlation AS correlation, COALESCE(a."External id", o."external id") AS external_id,
    COALESCE(a.bytes, o."Bytes") AS bytes,
    -- Of a broken line nothing counts; it is read again when it is mended.
    CASE WHEN h.ph = 'M' THEN TRY(json_extract_string(args, 'name')) END AS label,
    CASE
        WHEN h.ph = 'M'
            THEN TRY(json_extract_string(args, 'start_time_since_epoch_in_micros')::BIGINT)
    END AS base_us,
    args,
    status IS NULL AND reject IS NULL AND pid_text IS NULL AND tid_text IS NULL
    AND h.ph NOT IN ('M', 'C', 'B', 'E', 'b', 'e', 'S', 'F')
    AND ts_ns BETWEEN -4000000000000000000 AND 4000000000000000000
    AND COALESCE(dur_ns, 0) < 1000000000000000000 AS is_plain
FROM decided
