-- What the base of its file takes out of the range of BIGINT. Staged events are never near it.

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
