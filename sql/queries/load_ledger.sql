-- Takes the rows of ledger $files (a list) into _ledger, each with the name of its file.
INSERT INTO _ledger
SELECT * EXCLUDE (filename), parse_filename(filename) FROM read_parquet($files, filename = TRUE)
