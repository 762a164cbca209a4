-- How long all intervals have lasted together at a time: point is the last row of _interval_points
-- before it, or null where there is none.
CREATE OR REPLACE MACRO _lasted_at(ns, point) AS
COALESCE(point.lasted_ns + (ns::HUGEINT - point.t_ns) * (point.begun - point.ended), 0);
