-- Which of some messages are in the topics of read models.
-- ?1 ids
SELECT id
  FROM ${read_model_capture_records_table}
 WHERE id IN (
            SELECT v FROM JSON_TABLE(?1, '$[*]' COLUMNS (
                v CHAR(36) CHARACTER SET ascii COLLATE ascii_bin
                    PATH '$')) AS j)
