-- The files of a run that retention let go of and of which nothing was read since: uri. $run: its
-- name.
SELECT uri
FROM _expired_sources
WHERE run = $run AND NOT EXISTS (SELECT 1 FROM _live_sources AS l WHERE l.run = $run)
