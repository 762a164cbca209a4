-- Samples against intervals: step_metrics, phase_metrics and operator_metrics say what it answers.
-- intervals: a list of {key, node, start_ns, end_ns}. A sample holds until the next of its node,
-- rank, device and metric, a null until then for nothing, and the last one for no time. Along each
-- series run the sums that an interval is the difference of: of samples, of their values, of the
-- time held, and of value times time. They are whole numbers, of a unit that is a power of two, for
-- each series the smallest that leaves room for its largest sum: a difference of doubles would lose
-- what is small beside all that came before. What is 2^-60 of the largest value still counts.
-- Columns: key, node, resource, device, metric, unit, rank, then per interval: start_ns, end_ns,
-- samples, sample_sum, held_ns, area (value times nanoseconds), as_of (value at its start).
CREATE OR REPLACE MACRO _metrics_in(run_name, intervals, clock_name) AS TABLE
WITH given AS (
    SELECT i.key AS key, i.node AS node, i.start_ns AS start_ns, i.end_ns AS end_ns
    FROM (SELECT UNNEST(intervals) AS i)
    WHERE i.start_ns <= i.end_ns
),

taken AS (
    SELECT
        concat(node, chr(0), rank, chr(0), resource, chr(0), device, chr(0), metric) AS series,
        ts_ns, node, rank, resource, device, metric, unit, seq,
        CASE WHEN isfinite(value) THEN value END AS value
    FROM metrics
    WHERE run = run_name AND clock = clock_name
),

series AS (
    SELECT
        series, ANY_VALUE(node) AS node, ANY_VALUE(resource) AS resource,
        ANY_VALUE(device) AS device, ANY_VALUE(metric) AS metric, ANY_VALUE(unit) AS unit,
        ANY_VALUE(rank) AS rank,
        -- A sum has 126 bits. What is below 2^-1000 counts as nothing: a double ends there.
        pow(2, LEAST(
            124 - ceil(log2(COALESCE(NULLIF(MAX(abs(value)), 0), 1)))
            - ceil(log2(MAX(ts_ns)::DOUBLE - MIN(ts_ns) + COUNT(*) + 1)), 1000
        )) AS per_unit
    FROM taken
    GROUP BY series
),

samples AS (
    SELECT
        t.series, t.ts_ns, COUNT(t.value) AS samples,
        SUM((t.value * s.per_unit)::HUGEINT) AS sample_sum,
        LAST(t.value ORDER BY t.seq) AS value,
        LAST((t.value * s.per_unit)::HUGEINT ORDER BY t.seq) AS units
    FROM taken AS t
    INNER JOIN series AS s ON s.series = t.series
    GROUP BY t.series, t.ts_ns
),

held AS (
    SELECT
        *,
        CASE WHEN value IS NOT NULL THEN LEAD(ts_ns) OVER line - ts_ns END AS held_ns,
        SUM(samples) OVER line AS samples_to,
        SUM(sample_sum) OVER line AS sample_sum_to
    FROM samples
    WINDOW line AS (PARTITION BY series ORDER BY ts_ns)
),

points AS (
    SELECT
        series, ts_ns, value, units, samples, sample_sum, samples_to, sample_sum_to,
        -- What holds beyond the last sample is not known.
        held_ns IS NOT NULL AS is_held,
        COALESCE(SUM(held_ns) OVER earlier, 0)::BIGINT AS held_to,
        COALESCE(SUM(units * held_ns) OVER earlier, 0) AS area_to
    FROM held
    WINDOW earlier AS (
        PARTITION BY series ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

asked AS (
    SELECT g.key, g.start_ns, g.end_ns, s.*
    FROM given AS g
    INNER JOIN series AS s ON s.node = g.node
)

SELECT
    a.key, a.node, a.resource, a.device, a.metric, a.unit, a.rank, a.start_ns, a.end_ns,
    COALESCE(
        e.samples_to - COALESCE(b.samples_to, 0)
        + CASE WHEN b.ts_ns = a.start_ns THEN b.samples ELSE 0 END, 0
    )::BIGINT AS samples,
    (
        COALESCE(e.sample_sum_to, 0) - COALESCE(b.sample_sum_to, 0)
        + CASE WHEN b.ts_ns = a.start_ns THEN COALESCE(b.sample_sum, 0) ELSE 0 END
    ) / a.per_unit AS sample_sum,
    COALESCE(e.held_to + CASE WHEN e.is_held THEN a.end_ns - e.ts_ns ELSE 0 END, 0)
    - COALESCE(b.held_to + CASE WHEN b.is_held THEN a.start_ns - b.ts_ns ELSE 0 END, 0) AS held_ns,
    (
        COALESCE(e.area_to + CASE WHEN e.is_held THEN e.units * (a.end_ns - e.ts_ns) ELSE 0 END, 0)
        - COALESCE(
            b.area_to + CASE WHEN b.is_held THEN b.units * (a.start_ns - b.ts_ns) ELSE 0 END, 0
        )
    ) / a.per_unit AS area,
    b.value AS as_of
FROM asked AS a
ASOF LEFT JOIN points AS e ON e.series = a.series AND e.ts_ns <= a.end_ns
ASOF LEFT JOIN points AS b ON b.series = a.series AND b.ts_ns <= a.start_ns;
