-- Decides the clock of each file once all of it is read. The base is, in this order: what the
-- document or its name gave (given_base_ns), the metadata event start_time_since_epoch_in_micros
-- of that very file, zero where the timestamps are themselves microseconds since the epoch (from
-- 2000 on; a clock that counts from a start would need thirty years for it). Without one the
-- clock is the trace's own. System metrics are always since the epoch.
UPDATE files
SET
    base_ns = COALESCE(found.base_ns, 0),
    clock = CASE WHEN found.base_ns IS NULL THEN 'trace' ELSE 'epoch' END
FROM (
    SELECT
        f.file_no,
        COALESCE(
            f.given_base_ns,
            TRY_CAST(MAX(p.base_us)::HUGEINT * 1000 AS BIGINT),
            CASE
                WHEN f.format = 'system' THEN 0
                WHEN MIN(p.ts_ns) >= 946684800000000000 THEN 0
            END
        ) AS base_ns
    FROM files AS f
    LEFT JOIN (
        SELECT
            file_no, base_us,
            CASE WHEN ph <> 'M' AND reject IS NULL THEN ts_ns END AS ts_ns
        FROM parsed
        UNION ALL
        SELECT file_no, NULL AS base_us, first_ns FROM tally
    ) AS p ON p.file_no = f.file_no
    GROUP BY f.file_no, f.given_base_ns, f.format
) AS found
WHERE files.file_no = found.file_no;
