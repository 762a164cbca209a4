-- The live ledger rows of one node of a run. $run_key, $node_key: its partition.
SELECT * FROM _live_sources WHERE run_key = $run_key AND node_key = $node_key
