-- Takes away what was fired.
-- The index is named: while the table looks empty the optimizer would read all of
-- it instead, and wait for the rows of other hosts.
-- ?1 ids
DELETE d
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS fired
  STRAIGHT_JOIN ${saga_deadlines_table} AS d FORCE INDEX (PRIMARY)
    ON d.id = fired.id
