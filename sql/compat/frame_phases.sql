-- The training phases of a job in turn, on all nodes together: events of one phase in a row make
-- one interval (where one phase alone is asked for, each event makes its own), with what lies
-- before, between and after them. An interval without length is left out.
-- system, framework: frames as PandasFrame gives them; $phases: names, as Step:ModeKeys.TRAIN.
-- Columns: start_time_us, end_time_us (both included, microseconds), phase.
WITH marks AS (
    SELECT framework_metric AS phase, start_time_us AS start_us, end_time_us AS end_us, row_no
    FROM framework
    WHERE list_contains($phases, framework_metric)
),

turns AS (
    SELECT *, SUM(is_new) OVER (ORDER BY start_us, row_no) AS turn
    FROM (
        SELECT
            *,
            (
                len($phases) = 1
                OR COALESCE(phase <> LAG(phase) OVER (ORDER BY start_us, row_no), TRUE)
            )::BIGINT AS is_new
        FROM marks
    )
),

islands AS (
    SELECT turn, ANY_VALUE(phase) AS phase, MIN(start_us) AS start_us, MAX(end_us) AS end_us
    FROM turns
    GROUP BY turn
),

linked AS (
    SELECT
        *, LAG(end_us) OVER in_turn AS reached_us, LAG(phase) OVER in_turn AS phase_before,
        LEAD(phase) OVER in_turn AS phase_after
    FROM islands
    WINDOW in_turn AS (ORDER BY turn)
),

job AS (
    SELECT MIN(timestamp_us) AS start_us, MAX(timestamp_us) AS end_us FROM system
),

all_intervals AS (
    SELECT turn, 2 AS place, phase, start_us, end_us FROM linked
    UNION ALL
    SELECT
        turn, 1,
        concat('Between ', LEAST(phase_before, phase), ' and ', GREATEST(phase_before, phase)),
        reached_us + 1, start_us - 1
    FROM linked
    WHERE phase_before IS NOT NULL
    UNION ALL
    SELECT l.turn, 1, concat('Before ', l.phase), job.start_us, l.start_us - 1
    FROM linked AS l, job
    WHERE l.phase_before IS NULL
    UNION ALL
    SELECT l.turn, 3, concat('After ', l.phase), l.end_us + 1, job.end_us
    FROM linked AS l, job
    WHERE l.phase_after IS NULL
)

SELECT start_us AS start_time_us, end_us AS end_time_us, phase
FROM all_intervals
WHERE start_us <= end_us
ORDER BY turn, place
