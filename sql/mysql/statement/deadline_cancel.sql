-- Takes back one deadline of each saga in a list; both lists have one order.
-- The index is named: while the table looks empty the optimizer would read all of
-- it instead, and wait for the rows of other hosts.
-- ?1 saga type  ?2 saga ids  ?3 names
DELETE d
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS s
  STRAIGHT_JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS n
    ON n.place = s.place
  STRAIGHT_JOIN ${saga_deadlines_table} AS d
       FORCE INDEX (uq_${saga_deadlines_table})
    ON d.saga_type = ?1 AND d.saga_id = s.id AND d.name = n.id
