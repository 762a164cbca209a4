-- Step of a tensorflow event: step markers carry args.step_num.
CREATE OR REPLACE TEMP MACRO tensorflow_step(name, step_num, batch) AS step_num;
