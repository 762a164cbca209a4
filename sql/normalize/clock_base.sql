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
                WHEN MIN(p.ts_ns) FILTER (p.ph <> 'M' AND p.reject IS NULL)
                    >= 946684800000000000 THEN 0
            END
        ) AS base_ns
    FROM files AS f
    LEFT JOIN parsed AS p ON p.file_no = f.file_no
    GROUP BY f.file_no, f.given_base_ns, f.format
) AS found
WHERE files.file_no = found.file_no;

-- A place in time that no BIGINT of nanoseconds can say is no place.
UPDATE parsed
SET reject = 'timestamp out of range (ts)'
FROM files
WHERE
    files.file_no = parsed.file_no AND files.base_ns <> 0 AND parsed.reject IS NULL
    AND parsed.ph <> 'M'
    AND TRY_CAST(parsed.ts_ns::HUGEINT + files.base_ns AS BIGINT) IS NULL;

-- An end that none can say leaves the slice unfinished.
UPDATE parsed
SET dur_ns = NULL
FROM files
WHERE
    files.file_no = parsed.file_no
    -- Only these can reach beyond 2^63 together; the others need no slow arithmetic.
    AND (
        parsed.dur_ns > 1000000000000000000 OR parsed.ts_ns > 4000000000000000000
        OR files.base_ns > 4000000000000000000
    )
    AND TRY_CAST(parsed.ts_ns::HUGEINT + files.base_ns + parsed.dur_ns AS BIGINT) IS NULL;
