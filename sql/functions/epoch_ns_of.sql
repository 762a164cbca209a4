-- Nanoseconds since the epoch, from a time as people write it: what ts_ns is compared with.
-- Example: SELECT COUNT(*) FROM events WHERE ts_ns >= epoch_ns_of('2020-08-05 22:57:05');
CREATE OR REPLACE MACRO epoch_ns_of(moment) AS epoch_ns(moment::TIMESTAMP_NS);

COMMENT ON MACRO epoch_ns_of IS 'Nanoseconds since the epoch of a UTC time, given as text or timestamp.';
