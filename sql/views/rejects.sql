-- Each rejected piece of each file (the first 100 a file), with where it stands and why.
-- Example: SELECT * FROM rejects WHERE run = 'job';
CREATE OR REPLACE VIEW rejects AS
SELECT run, uri, r.byte_offset, r.reason, r.text
FROM (SELECT run, uri, UNNEST(rejects) AS r FROM _shown_sources);

COMMENT ON VIEW rejects IS 'Pieces of files that are no readable event, the first 100 a file.';
COMMENT ON COLUMN rejects.run IS 'Training job.';
COMMENT ON COLUMN rejects.uri IS 'The file.';
COMMENT ON COLUMN rejects.byte_offset IS 'Where the piece begins, in bytes of the uncompressed document.';
COMMENT ON COLUMN rejects.reason IS 'Why it was rejected.';
COMMENT ON COLUMN rejects.text IS 'Its first 200 bytes.';
