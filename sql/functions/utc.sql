-- Time as people read it, from nanoseconds since the epoch (clock epoch).
-- Example: SELECT utc(ts_ns), name FROM events WHERE clock = 'epoch' LIMIT 3;
CREATE OR REPLACE MACRO utc(ns) AS make_timestamp_ns(ns);

COMMENT ON MACRO utc IS 'TIMESTAMP_NS in UTC of nanoseconds since the epoch.';
