-- Adds a file of the batch.
INSERT INTO files VALUES (
    $file_no, $ingest_id, $run_key, $node_key, $format, $rank, $base_ns, $first_place, NULL, NULL
)
