-- Which calls of a dataloader frame took at least twice the median, the longest first?
-- calls: a frame as PandasFrame.get_all_dataloader_metrics gives it.
-- Columns: start_time, end_time (texts), duration_us, worker_id.
SELECT start_time, end_time, duration_us, worker_id
FROM (SELECT *, median(duration_us) OVER () AS median_us FROM calls)
WHERE duration_us >= 2 * median_us AND duration_us > median_us
ORDER BY duration_us DESC, start_time_us
