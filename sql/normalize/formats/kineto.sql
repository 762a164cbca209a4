-- Step of a kineto event: torch.profiler names its step annotations ProfilerStep#N.
CREATE OR REPLACE TEMP MACRO kineto_step(name, step_num, batch) AS
CASE
    WHEN starts_with(name, 'ProfilerStep#')
        THEN TRY_CAST(regexp_extract(name, '^ProfilerStep#(\d+)$', 1) AS BIGINT)
END;
