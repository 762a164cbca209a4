-- Step of a smdebug event: its Step:ModeKeys.* events carry args.step_num, as text or number.
CREATE OR REPLACE TEMP MACRO smdebug_step(name, step_num, batch) AS step_num;
