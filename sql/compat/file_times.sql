-- The times in the names of the files of a run, in microseconds since the epoch, ascending: the end
-- of a framework file, the minute of a system file; of a TensorFlow trace its last event, since
-- its name has none. $run: its name; $is_system: which of the two.
SELECT time_us
FROM (
    SELECT
        format = 'system' AS is_system,
        CASE format
            WHEN 'system'
                THEN 1000000 * TRY_CAST(regexp_extract(uri, '([0-9]{10})\.[^/]*$', 1) AS BIGINT)
            WHEN 'tensorflow' THEN last_ns // 1000
            ELSE TRY_CAST(regexp_extract(uri, '([0-9]+)_[^/]*$', 1) AS BIGINT)
        END AS time_us
    FROM sources
    WHERE run = $run AND error IS NULL
)
WHERE is_system = $is_system AND time_us IS NOT NULL
ORDER BY time_us
