-- The clocks of the files of a run: clock, files. $run: its name.
SELECT clock, COUNT(*) AS files
FROM _live_sources
WHERE run = $run AND event_rows + metric_rows > 0
GROUP BY clock
