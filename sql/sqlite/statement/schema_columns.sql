-- Every column of every table: one row each, table and column, and the
-- collation if it takes texts for equal whose bytes differ. Where positions
-- come from a sequence it stands here as the counter table would.
SELECT t.name, c.name,
       (SELECT x.coll
          FROM pragma_index_list(t.name) AS i
          JOIN pragma_index_xinfo(i.name) AS x
         WHERE x.name = c.name AND x.coll <> 'BINARY'
         LIMIT 1)
  FROM sqlite_master AS t
  JOIN pragma_table_info(t.name) AS c
 WHERE t.type = 'table'
