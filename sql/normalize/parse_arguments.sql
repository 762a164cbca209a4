-- What is in the args of fields (lines.FIELDS: events whose other fields are known), in the same
-- order. Columns: status (broken: args are no valid JSON), reject, the arguments as in parsed
-- (tables.sql), and is_plain.
WITH arguments AS (
    SELECT args, TRY(args_fields(args)) AS a FROM fields
),

-- Other spellings are those of events that have no "External id".
spelled AS (
    SELECT
        *,
        CASE WHEN a."External id" IS NULL THEN TRY(other_args_fields(args)) END AS o
    FROM arguments
)

SELECT
    CASE WHEN args IS NOT NULL AND a IS NULL THEN 'broken' END AS status,
    NULL::VARCHAR AS reject,
    a.step_num AS step_num, a.batch AS batch,
    COALESCE(a.device, o."Device Id") AS device, a.stream AS stream,
    a.correlation AS correlation, COALESCE(a."External id", o."external id") AS external_id,
    COALESCE(a.bytes, o."Bytes") AS bytes,
    TRUE AS is_plain
FROM spelled
