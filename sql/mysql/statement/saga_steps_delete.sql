-- Deletes the history of sagas that are deleted.
-- ?1 ids of their rows
DELETE p
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin
               PATH '$')) AS gone
  JOIN ${saga_steps_table} AS p ON p.instance_id = gone.id
