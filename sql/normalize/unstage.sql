-- Takes the events of file $file_no from the stage, one segment of which is the table staged.
INSERT INTO parsed BY NAME
SELECT * FROM staged WHERE file_no = $file_no
