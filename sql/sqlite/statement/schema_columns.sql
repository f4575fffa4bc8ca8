-- Every column of every table: one row each, table and column. Where positions
-- come from a sequence it stands here as the counter table would.
SELECT t.name, c.name
  FROM sqlite_master AS t
  JOIN pragma_table_info(t.name) AS c
 WHERE t.type = 'table'
