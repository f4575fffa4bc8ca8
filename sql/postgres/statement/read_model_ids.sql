-- Which of some messages are in the topics of read models.
-- ?1 ids
SELECT id
  FROM ${read_model_capture_records_table}
 WHERE id = ANY (?1::text[]::uuid[])
