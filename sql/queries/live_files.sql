-- What the lake holds of each file: uri, fingerprint, run, format.
SELECT uri, fingerprint, run, format FROM _live_sources
