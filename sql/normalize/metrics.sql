-- Fills metric_rows: one row a sample of a system file, and one row a series of a counter event.
-- A value that is no finite number is a gap: the row stays, its value is null.

INSERT INTO metric_rows
SELECT
    s.file_no, s.seq, s.ts_ns, s.resource, s.device, s.metric, s.value, s.unit, f.rank
FROM samples AS s
INNER JOIN files AS f ON f.file_no = s.file_no
WHERE s.status IS NULL AND s.reject IS NULL;

INSERT INTO metric_rows
WITH series AS (
    SELECT
        p.file_no, p.seq, p.ts_ns, p.pid, p.name, f.format, f.rank, each.key,
        -- What tells counters of one name apart.
        concat(
            p.name, '[' || p.id || ']',
            CASE
                WHEN MIN(p.pid) OVER same <> MAX(p.pid) OVER same
                    THEN concat(' (process ', COALESCE(p.pid_text, p.pid::VARCHAR), ')')
            END
        ) AS counter,
        TRY_CAST(each.value AS DOUBLE) AS number
    FROM parsed AS p
    INNER JOIN files AS f ON f.file_no = p.file_no,
        json_each(p.args) AS each
    WHERE p.ph = 'C' AND p.status IS NULL AND p.reject IS NULL AND each.key IS NOT NULL
    WINDOW same AS (PARTITION BY p.file_no, p.name, p.id)
),

described AS (
    SELECT
        *,
        CASE WHEN isfinite(number) THEN number END AS value,
        CASE
            WHEN format = 'composer' THEN composer_series(name, key)
            ELSE {
                resource: 'counter',
                device: counter,
                metric: key, unit: NULL, factor: 1.0::DOUBLE
            }
        END AS s
    FROM series
)

SELECT
    file_no, seq, ts_ns, s.resource, s.device, s.metric, value * s.factor, s.unit,
    CASE WHEN format = 'composer' THEN composer_rank(rank, pid) ELSE rank END
FROM described;
