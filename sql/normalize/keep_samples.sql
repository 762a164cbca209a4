-- Keeps the rows (a table as of parse_samples.sql).
INSERT INTO samples
SELECT * FROM rows
