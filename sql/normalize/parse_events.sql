-- Reads lines (one trace event each) into parsed. lines: file_no, seq, head (the event's JSON
-- without the value of args), args (that value as written, null if no object).
-- $quick: the lines were cut by pattern, so an args key still in head means a wrong cut.
-- Microseconds go through DECIMAL text to whole nanoseconds, half away from zero.
INSERT INTO parsed
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

fields AS (
    SELECT
        *,
        TRY(args_fields(args)) AS a
    FROM whole
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
)

SELECT
    file_no, seq, status,
    CASE
        WHEN status IS NOT NULL THEN NULL
        WHEN h.ph IS NULL THEN 'no phase (ph)'
        WHEN h.ph = 'M' THEN NULL
        WHEN ts_ns IS NULL THEN 'no usable timestamp (ts)'
        WHEN h.ph = 'X' AND dur_ns < 0 THEN 'negative duration (dur)'
    END AS reject,
    h.ph, h.name, h.cat, ts_ns, dur_ns,
    COALESCE(h.pid, text_id(pid_text)), COALESCE(h.tid, text_id(tid_text)),
    CASE WHEN TRY_CAST(pid_text AS UBIGINT) IS NULL THEN pid_text END,
    CASE WHEN TRY_CAST(tid_text AS UBIGINT) IS NULL THEN tid_text END,
    COALESCE(h.id, scoped[1], scoped[2]),
    CASE
        WHEN scoped[2] IS NOT NULL
            THEN concat_ws(' ', scoped[3], 'pid', COALESCE(h.pid::VARCHAR, pid_text))
        ELSE scoped[3]
    END,
    TRY_CAST(a[1] AS BIGINT), TRY_CAST(a[2] AS BIGINT),
    TRY_CAST(COALESCE(a[3], a[4]) AS INTEGER), TRY_CAST(a[5] AS BIGINT),
    TRY_CAST(a[6] AS BIGINT), TRY_CAST(COALESCE(a[7], a[8]) AS BIGINT),
    TRY_CAST(COALESCE(a[9], a[10]) AS BIGINT),
    CASE WHEN h.ph = 'M' THEN a[11] END,
    CASE WHEN h.ph = 'M' THEN TRY_CAST(a[12] AS BIGINT) END,
    args
FROM checked;
