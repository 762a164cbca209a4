-- The partition that a time falls in: what the column hour is compared with.
-- Example: SELECT COUNT(*) FROM metrics WHERE hour = partition_hour(1596668225000000000, 'epoch');
CREATE OR REPLACE MACRO partition_hour(ns, clock_name) AS
CASE
    WHEN clock_name = 'trace' THEN 'relative'
    -- A timestamp ends before what a BIGINT holds: what is beyond is in the last hour that is.
    ELSE strftime(
        make_timestamp_ns(LEAST(GREATEST(ns, -9223372036000000000), 9223372036000000000)),
        '%Y-%m-%dT%H'
    )
END;

COMMENT ON MACRO partition_hour IS 'Value of the column hour for a time in nanoseconds on a clock.';
