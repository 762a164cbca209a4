-- What share of the time was a resource in each range of utilisation? A sample holds until the next
-- of its node, device and metric; the last one holds for no time. edges: the bounds in ascending
-- order; a range includes its lower bound, the last one both. Values beyond the edges have a range
-- with one bound.
-- Columns: resource, node, metric, low, high (percent), samples, sample_share, dur_ns, time_share
-- (0 to 1, of all ranges of a resource, node and metric; null where no time passed).
-- Example: SELECT * FROM utilization_ranges('job', edges := [0, 5, 50, 100]);
CREATE OR REPLACE MACRO utilization_ranges(
    run_name, edges := [0, 10, 90, 100], clock_name := 'epoch'
) AS TABLE
WITH samples AS (
    SELECT
        resource, node, metric, value,
        LEAD(ts_ns, 1, ts_ns) OVER (
            PARTITION BY resource, node, device, metric, rank ORDER BY ts_ns, seq
        ) - ts_ns AS dur_ns
    FROM metrics
    WHERE run = run_name AND clock = clock_name AND unit = 'percent'
),

ranged AS (
    SELECT
        *,
        LEAST(
            len(list_filter(edges, lambda edge: edge <= value)),
            CASE WHEN value <= edges[len(edges)] THEN len(edges) - 1 ELSE len(edges) END
        ) AS place
    FROM samples
    WHERE value IS NOT NULL
)

SELECT
    resource, node, metric,
    CASE WHEN place > 0 THEN edges[place] END AS low,
    CASE WHEN place < len(edges) THEN edges[place + 1] END AS high,
    COUNT(*) AS samples,
    COUNT(*) / SUM(COUNT(*)) OVER whole AS sample_share,
    SUM(dur_ns)::BIGINT AS dur_ns,
    SUM(dur_ns) / NULLIF(SUM(SUM(dur_ns)) OVER whole, 0) AS time_share
FROM ranged
GROUP BY resource, node, metric, place
WINDOW whole AS (PARTITION BY resource, node, metric)
ORDER BY resource, node, metric, place;

COMMENT ON MACRO TABLE utilization_ranges IS 'Share of time in each range of utilisation, by resource, node and metric.';
