-- Reads lines (one system metric sample each). The smdebug system layout: Type, Name, Dimension,
-- Value, NodeId, Timestamp (seconds since the epoch, cut to whole nanoseconds from the decimal
-- text), and Unit where the writer says it. $quick: the lines were cut by pattern. Columns: those
-- of samples (tables.sql).
WITH heads AS (
    SELECT
        file_no, seq, head,
        TRY(sample_fields(head)) AS h
    FROM lines
),

counted AS (
    SELECT
        *,
        CASE WHEN h IS NOT NULL THEN len(json_keys(head)) END AS key_count,
        CASE WHEN h.Unit IS NULL THEN 6 ELSE 7 END AS own_keys
    FROM heads
),

checked AS (
    SELECT
        *,
        CASE
            WHEN h IS NULL THEN 'broken'
            WHEN key_count = 0 THEN 'empty'
            WHEN key_count <> own_keys AND NOT $quick
                AND len(list_distinct(json_keys(head))) < key_count THEN 'twice'
            WHEN key_count <> own_keys AND $quick THEN 'twice'
        END AS status,
        TRY_CAST(h.Timestamp * 1000000000 AS BIGINT) AS ts_ns
    FROM counted
)

SELECT
    file_no, seq, status,
    CASE
        WHEN status IS NOT NULL THEN NULL
        WHEN ts_ns IS NULL THEN 'no usable timestamp (Timestamp)'
        WHEN h.Type IS NULL AND h.Name IS NULL AND h.Dimension IS NULL
            THEN 'no metric (Type, Name, Dimension)'
    END AS reject,
    ts_ns, system_resource(h.Type) AS resource, h.Name AS device, h.Dimension AS metric,
    CASE WHEN isfinite(h.Value) THEN h.Value END AS value,
    COALESCE(h.Unit, system_unit(h.Dimension)) AS unit,
    h.NodeId AS node
FROM checked
