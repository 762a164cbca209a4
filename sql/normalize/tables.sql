-- The working tables of one ingest batch. They live in a database of their own, in memory with
-- spilling, and are gone with it. Times are nanoseconds; ts_ns is as in the file, without base.

-- One row a file of the batch. given_base_ns is what its name or its document says;
-- base_ns and clock are decided when all of it is read (clock_base.sql). first_place is how many
-- events the files before it have: first_place + seq numbers the events of the batch.
CREATE TEMP TABLE files (
    file_no INTEGER, ingest_id BIGINT, run_key VARCHAR, node_key VARCHAR, format VARCHAR,
    rank INTEGER, given_base_ns BIGINT, first_place BIGINT, base_ns BIGINT, clock VARCHAR
);

-- One row an element of traceEvents that is not staged: others decide what becomes of it, it is
-- odd, or rejected. status says why the text must be looked at again
-- (broken: no valid JSON; twice: a key stands twice); reject, why it becomes no row.
-- A text pid or tid stands in *_text, and its stable negative id in pid or tid.
CREATE TEMP TABLE parsed (
    file_no INTEGER, seq BIGINT, status VARCHAR, reject VARCHAR,
    ph VARCHAR, name VARCHAR, category VARCHAR, ts_ns BIGINT, dur_ns BIGINT,
    pid BIGINT, tid BIGINT, pid_text VARCHAR, tid_text VARCHAR, id VARCHAR,
    step_num BIGINT, batch BIGINT, device INTEGER, stream BIGINT, correlation BIGINT,
    external_id BIGINT, bytes BIGINT, label VARCHAR, base_us BIGINT, args JSON
);

-- What was staged, counted by file and phase; open_slices have no duration.
CREATE TEMP TABLE tally (
    file_no INTEGER, ph VARCHAR, events BIGINT, open_slices BIGINT, first_ns BIGINT,
    last_ns BIGINT
);

-- One row a line of a system metrics file.
CREATE TEMP TABLE samples (
    file_no INTEGER, seq BIGINT, status VARCHAR, reject VARCHAR,
    ts_ns BIGINT, resource VARCHAR, device VARCHAR, metric VARCHAR, value DOUBLE, unit VARCHAR,
    node VARCHAR
);

-- A begin and the end that closes it.
CREATE TEMP TABLE pairs (file_no INTEGER, begin_seq BIGINT, end_seq BIGINT);

-- What the metrics table will hold, without its base.
CREATE TEMP TABLE metric_rows (
    file_no INTEGER, seq BIGINT, ts_ns BIGINT, resource VARCHAR, device VARCHAR,
    metric VARCHAR, value DOUBLE, unit VARCHAR, rank INTEGER
);
