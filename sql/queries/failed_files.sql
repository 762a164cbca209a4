-- The files whose newest reading failed: uri, fingerprint.
SELECT uri, fingerprint FROM _failed_sources
