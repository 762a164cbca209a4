-- The fields of an event's JSON that become columns. Both fail where it is no valid JSON.

-- head: the keys of the event itself. Numbers come from their text, exact.
CREATE OR REPLACE TEMP MACRO head_fields(head) AS from_json(head, '{
    "ph": "VARCHAR", "name": "VARCHAR", "cat": "VARCHAR", "ts": "DECIMAL(28,3)",
    "dur": "DECIMAL(28,3)", "pid": "BIGINT", "tid": "BIGINT", "id": "VARCHAR", "s": "VARCHAR",
    "bp": "VARCHAR", "args": "JSON"
}');

-- args: the arguments that have a column.
CREATE OR REPLACE TEMP MACRO args_fields(args) AS from_json(args, '{
    "step_num": "BIGINT", "batch": "BIGINT", "device": "INTEGER", "stream": "BIGINT",
    "correlation": "BIGINT", "External id": "BIGINT", "bytes": "BIGINT"
}');

-- Other spellings of these. Field names of a struct differ in more than case, so they are apart.
CREATE OR REPLACE TEMP MACRO other_args_fields(args) AS from_json(args, '{
    "Device Id": "INTEGER", "external id": "BIGINT", "Bytes": "BIGINT"
}');

-- A sample of system metrics.
CREATE OR REPLACE TEMP MACRO sample_fields(head) AS from_json(head, '{
    "Type": "VARCHAR", "Name": "VARCHAR", "Dimension": "VARCHAR", "Value": "DOUBLE",
    "NodeId": "VARCHAR", "Timestamp": "DECIMAL(28,9)", "Unit": "VARCHAR"
}');
