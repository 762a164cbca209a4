-- Whether steps of a mode are the marks of a profiler, beside which the training may have its own.
CREATE OR REPLACE MACRO _is_profilers(mode) AS mode IN ('ProfilerStep', 'device');
