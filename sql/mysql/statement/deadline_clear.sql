-- Takes back all deadlines of some sagas.
-- The index is named: while the table looks empty the optimizer would read all of
-- it instead, and wait for the rows of other hosts.
-- ?1 saga type  ?2 saga ids
DELETE d
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS gone
  STRAIGHT_JOIN ${saga_deadlines_table} AS d
       FORCE INDEX (uq_${saga_deadlines_table})
    ON d.saga_type = ?1 AND d.saga_id = gone.id
