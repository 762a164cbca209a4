"""The lake on disk or in a bucket: layout, ledger, writing, compaction, and opening it."""
