-- The smdebug system layout: what its Type names, and in which unit its metrics come where no Unit
-- says it.

-- resource of a Type: as it is, but i/o is disk.
CREATE OR REPLACE TEMP MACRO system_resource(type) AS
CASE lower(type) WHEN 'i/o' THEN 'disk' ELSE lower(type) END;

-- unit of a metric by its name, null where the name does not tell.
CREATE OR REPLACE TEMP MACRO system_unit(metric) AS CASE
    WHEN regexp_matches(metric, '(?i)(utilization|percent(age)?)$') THEN 'percent'
    WHEN regexp_matches(metric, '(?i)(bytes)$') THEN 'bytes'
    WHEN regexp_matches(metric, '(?i)iops$') THEN 'operations/s'
END;
