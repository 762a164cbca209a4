-- Step of a chrome event: no convention; args.step_num is taken where it is given.
CREATE OR REPLACE TEMP MACRO chrome_step(name, step_num, batch) AS step_num;
