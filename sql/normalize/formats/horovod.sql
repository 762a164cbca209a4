-- Step of a horovod event: it knows no steps; files that smdebug wrote may carry args.step_num.
CREATE OR REPLACE TEMP MACRO horovod_step(name, step_num, batch) AS step_num;
