-- The epochs of read models that are gone; one written past the projection
-- has none.
-- ?1 projection  ?2 keys
DELETE e
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS gone
  JOIN ${read_model_epochs_table} AS e
    ON e.projection = ?1 AND e.read_model_key = gone.id
