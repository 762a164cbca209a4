-- What the lake holds of each file, or held until retention let go of it: uri, fingerprint, run,
-- format.
SELECT uri, fingerprint, run, format FROM _live_sources
UNION ALL
SELECT uri, fingerprint, run, format FROM _expired_sources
