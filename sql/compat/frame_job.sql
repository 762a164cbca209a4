-- How the time of a job divides, from its two frames; one row. A job without system metrics lasts
-- from its first event to its last. The training loop starts with the lowest step of the modes
-- TRAIN and GLOBAL and ends with the last event; nulls where there is no such step.
-- system, framework: frames as PandasFrame gives them.
-- Columns: start_time, end_time (of the first), first_event, last_event (of the second),
-- training_loop_start (times as the frames have them, texts or datetimes); job_duration,
-- training_loop_duration, initialization, finalization (microseconds).
WITH events AS (
    SELECT
        ARG_MIN(start_time, start_time_us) AS start_time, MIN(start_time_us) AS start_us,
        ARG_MAX(end_time, end_time_us) AS end_time, MAX(end_time_us) AS end_us
    FROM framework
),

job AS (
    SELECT
        ARG_MIN(s.timestamp, s.timestamp_us) AS start_time,
        ARG_MAX(s.timestamp, s.timestamp_us) AS end_time,
        COALESCE(MIN(s.timestamp_us), ANY_VALUE(e.start_us)) AS start_us,
        COALESCE(MAX(s.timestamp_us), ANY_VALUE(e.end_us)) AS end_us
    FROM events AS e
    LEFT JOIN system AS s ON TRUE
),

loop AS (
    SELECT
        ARG_MIN(start_time, (step, start_time_us)) AS start_time,
        ARG_MIN(start_time_us, (step, start_time_us)) AS start_us
    FROM framework
    WHERE step <> -1 AND framework_metric IN ('Step:ModeKeys.TRAIN', 'Step:ModeKeys.GLOBAL')
)

SELECT
    job.start_time, job.end_time, job.end_us - job.start_us AS job_duration,
    events.start_time AS first_event, events.end_time AS last_event,
    loop.start_time AS training_loop_start,
    events.end_us - loop.start_us AS training_loop_duration,
    loop.start_us AS initialization, job.end_us - events.end_us AS finalization
FROM job, events, loop
