-- Keeps rows (a table as of parse_events.sql), which do not go to the stage.
INSERT INTO parsed
SELECT * EXCLUDE (is_plain) FROM rows
