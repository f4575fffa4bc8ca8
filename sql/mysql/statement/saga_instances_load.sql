-- The sagas of some ids.
-- ?1 saga type  ?2 saga ids
-- Gives: place of the id in the array (from 0), id, version, completed_at,
-- state.
SELECT wanted.place - 1, s.id, s.version, s.completed_at, s.state_json
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS wanted
  JOIN ${saga_instances_table} AS s
    ON s.saga_type = ?1 AND s.saga_id = wanted.id
