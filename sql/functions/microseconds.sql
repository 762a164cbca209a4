-- Microseconds of nanoseconds as a decimal text that keeps all of them: 1500 is 1.5.
-- Example: SELECT microseconds(ts_ns) FROM events LIMIT 1;
CREATE OR REPLACE MACRO microseconds(ns) AS
CASE WHEN ns < 0 THEN '-' ELSE '' END || (abs(ns) // 1000)::VARCHAR
|| CASE
    WHEN ns % 1000 = 0 THEN ''
    ELSE rtrim('.' || lpad((abs(ns) % 1000)::VARCHAR, 3, '0'), '0')
END;

COMMENT ON MACRO microseconds IS 'Microseconds of nanoseconds as text, exact to the nanosecond.';
