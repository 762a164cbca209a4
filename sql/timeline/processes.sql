-- The processes of a merged timeline in the order that readers of such timelines know, then those
-- with other names, then the system metrics: process_key, process_name, pid (from 1), and a suffix
-- for the name where there are several nodes or ranks.
-- $run, $from, $until, $clock: as in sources.sql; $metrics: whether samples become counters;
-- $low_gpu: percent below which the use of a GPU is marked, or null.
CREATE OR REPLACE TEMP TABLE timeline_processes AS
SELECT
    process_key, process_name,
    ROW_NUMBER() OVER (ORDER BY place, rank NULLS FIRST, node, process_name, own_pid) AS pid,
    CASE WHEN COUNT(DISTINCT node) OVER () > 1 THEN ' ' || node ELSE '' END
    || CASE
        WHEN COUNT(DISTINCT rank) OVER () > 1 AND rank IS NOT NULL THEN concat(' rank ', rank)
        ELSE ''
    END AS suffix
FROM (
    SELECT DISTINCT
        process_key, node, rank, process_name, own_pid,
        CASE
            WHEN contains(process_name, 'Step:') THEN 1
            WHEN contains(process_name, 'Forward') THEN 2
            WHEN contains(process_name, 'Backward') THEN 3
            WHEN contains(process_name, 'DataIterator') THEN 4
            WHEN contains(process_name, 'Dataset') THEN 5
            WHEN contains(process_name, '/device') THEN 6
            WHEN contains(process_name, '/host') THEN 7
            WHEN contains(process_name, 'gpu_functions') THEN 8
            WHEN contains(process_name, 'cpu_functions') THEN 9
            WHEN contains(process_name, 'Horovod') THEN 10
            ELSE 11
        END AS place
    FROM timeline_events($run, $from, $until, $clock)
    UNION ALL
    SELECT DISTINCT process_key, node, rank, 'system metrics', NULL, 12
    FROM timeline_samples($run, $from, $until, $clock)
    WHERE $metrics OR ($low_gpu IS NOT NULL AND metric = 'GPUUtilization' AND value < $low_gpu)
)
