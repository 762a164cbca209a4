-- Composer writes the global rank as pid, and the batch number as args.batch.
-- Its SystemProfiler has three faults of unit, put right here: memory/* *_gb series hold
-- bytes / 2^9, network/* kb_* series hold bytes / 2^3, and a disk series is named field_name
-- whatever it holds, so its name is the last part of the event's. Series that are named by what
-- they hold (*_bytes, bytes_*, a disk's by its field) are taken as they are.

-- Step of a composer event.
CREATE OR REPLACE TEMP MACRO composer_step(name, step_num, batch) AS batch;

-- Rank of a composer event.
CREATE OR REPLACE TEMP MACRO composer_rank(file_rank, pid) AS
COALESCE(TRY_CAST(pid AS INTEGER), file_rank);

-- resource, device, metric, unit and the factor to it of one counter series.
CREATE OR REPLACE TEMP MACRO composer_series(name, series) AS CASE
    WHEN name = 'cpu' THEN {
        resource: 'cpu', device: 'cpu', metric: series, unit: 'percent', factor: 1.0::DOUBLE
    }
    WHEN starts_with(name, 'memory/cuda/') THEN {
        resource: 'memory', device: 'cuda', metric: series,
        unit: CASE WHEN ends_with(series, '_bytes') THEN 'bytes' END, factor: 1.0::DOUBLE
    }
    WHEN starts_with(name, 'memory/') AND ends_with(series, '_bytes') THEN {
        resource: 'memory', device: split_part(name, '/', 2), metric: series, unit: 'bytes',
        factor: 1.0::DOUBLE
    }
    WHEN starts_with(name, 'memory/') AND ends_with(series, '_gb') THEN {
        resource: 'memory', device: split_part(name, '/', 2),
        metric: regexp_replace(series, '_gb$', '_bytes'), unit: 'bytes', factor: 512.0::DOUBLE
    }
    WHEN starts_with(name, 'network/') AND starts_with(series, 'kb_') THEN {
        resource: 'network', device: regexp_extract(name, '^network/(.*)/[^/]*$', 1),
        metric: regexp_replace(series, '^kb_', 'bytes_'), unit: 'bytes', factor: 8.0::DOUBLE
    }
    WHEN starts_with(name, 'network/') AND starts_with(series, 'bytes_') THEN {
        resource: 'network', device: regexp_extract(name, '^network/(.*)/[^/]*$', 1),
        metric: series, unit: 'bytes', factor: 1.0::DOUBLE
    }
    WHEN starts_with(name, 'disk/') AND series IN ('field_name', regexp_extract(name, '[^/]*$'))
        THEN {
        resource: 'disk', device: regexp_extract(name, '^disk/(.*)/[^/]*$', 1),
        metric: regexp_extract(name, '[^/]*$'),
        unit: CASE
            WHEN ends_with(name, '_bytes') THEN 'bytes'
            WHEN ends_with(name, '_time') THEN 'milliseconds'
            ELSE 'count'
        END,
        factor: 1.0::DOUBLE
    }
    ELSE {
        resource: 'counter', device: name, metric: series, unit: NULL, factor: 1.0::DOUBLE
    }
END;
