-- Every column of every table: one row each, table and column, and the
-- collation if it takes texts for equal whose bytes differ. Where positions
-- come from a sequence it stands here as the counter table would.
SELECT table_name, column_name,
       CASE WHEN collation_name NOT LIKE '%nopad!_bin' ESCAPE '!'
             AND NOT (column_type = 'char(36)' AND collation_name = 'ascii_bin')
            THEN collation_name END
  FROM information_schema.columns
 WHERE table_schema = DATABASE()
