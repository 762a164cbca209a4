-- Step that an event of any format has in its name: the annotations of torch.profiler, also in a
-- timeline that was merged, and the line of steps that TensorFlow's profiler has for a device.
CREATE OR REPLACE TEMP MACRO named_step(name, process_name, thread_name) AS CASE
    WHEN starts_with(name, 'ProfilerStep#') THEN kineto_step(name, NULL, NULL)
    WHEN thread_name = 'Steps' AND starts_with(process_name, '/device:')
        THEN TRY_CAST(regexp_extract(name, '^(\d+)$', 1) AS BIGINT)
END;
