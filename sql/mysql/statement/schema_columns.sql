-- Every column of every table: one row each, table and column. Where positions
-- come from a sequence it stands here as the counter table would.
SELECT table_name, column_name
  FROM information_schema.columns
 WHERE table_schema = DATABASE()
