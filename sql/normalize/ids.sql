-- Process and thread ids that are no BIGINT.

-- The id of a text: an unsigned 64-bit number keeps its bits, any other text gets a negative id
-- below -2^62 that is the same in every file and on every machine (from its MD5). Null for null.
CREATE OR REPLACE TEMP MACRO text_id(id) AS CASE
    WHEN TRY_CAST(id AS UBIGINT) IS NOT NULL
        THEN (TRY_CAST(id AS UBIGINT)::HUGEINT - 18446744073709551616)::BIGINT
    ELSE -((md5_number_lower(id) >> 2)::BIGINT) - 4611686018427387904
END;
