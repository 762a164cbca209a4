-- Names that metadata events give to processes and threads; the last one in the file wins, and
-- it applies to the events before it too.

CREATE OR REPLACE TEMP TABLE process_names AS
SELECT file_no, pid, ARG_MAX(label, seq) AS name
FROM parsed
WHERE ph = 'M' AND parsed.name = 'process_name' AND label IS NOT NULL AND status IS NULL
GROUP BY file_no, pid;

CREATE OR REPLACE TEMP TABLE thread_names AS
SELECT file_no, pid, tid, ARG_MAX(label, seq) AS name
FROM parsed
WHERE ph = 'M' AND parsed.name = 'thread_name' AND label IS NOT NULL AND status IS NULL
GROUP BY file_no, pid, tid;

CREATE OR REPLACE TEMP TABLE closed AS
SELECT
    p.file_no, p.begin_seq, e.ts_ns AS end_ns, e.args AS end_args, e.step_num, e.batch,
    e.device, e.stream, e.correlation, e.external_id, e.bytes
FROM pairs AS p
INNER JOIN parsed AS e ON e.file_no = p.file_no AND e.seq = p.end_seq;
