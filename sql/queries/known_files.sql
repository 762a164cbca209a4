-- What the lake holds of each file, or held until retention let go of it: uri, fingerprint, run,
-- format, is_let_go.
SELECT uri, fingerprint, run, format, FALSE AS is_let_go FROM _live_sources
UNION ALL
SELECT uri, fingerprint, run, format, TRUE FROM _expired_sources
