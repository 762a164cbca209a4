-- The fields of an event's JSON that become columns. Both fail where it is no valid JSON.

-- head: the keys of the event itself. Numbers come from their text, exact.
CREATE OR REPLACE TEMP MACRO head_fields(head) AS from_json(head, '{
    "ph": "VARCHAR", "name": "VARCHAR", "cat": "VARCHAR", "ts": "DECIMAL(28,3)",
    "dur": "DECIMAL(28,3)", "pid": "BIGINT", "tid": "BIGINT", "id": "VARCHAR", "s": "VARCHAR",
    "bp": "VARCHAR", "args": "JSON"
}');

-- args: the arguments that have a column, as a list of texts in this order.
CREATE OR REPLACE TEMP MACRO args_fields(args) AS json_extract_string(args, [
    'step_num', 'batch', 'device', 'Device Id', 'stream', 'correlation', 'External id',
    'external id', 'bytes', 'Bytes', 'name', 'start_time_since_epoch_in_micros'
]);

-- A sample of system metrics.
CREATE OR REPLACE TEMP MACRO sample_fields(head) AS from_json(head, '{
    "Type": "VARCHAR", "Name": "VARCHAR", "Dimension": "VARCHAR", "Value": "DOUBLE",
    "NodeId": "VARCHAR", "Timestamp": "DECIMAL(28,9)"
}');
