-- Every rejected piece that is kept, in order of its place.
SELECT run, byte_offset, reason, text, uri FROM rejects ORDER BY run, uri, byte_offset
