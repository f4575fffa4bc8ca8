-- ?1 ids
DELETE d
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS fired
  JOIN ${saga_deadlines_table} AS d ON d.id = fired.id
