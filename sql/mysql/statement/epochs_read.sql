-- Under which rebuild read models were made.
-- ?1 projection  ?2 keys
-- Gives: place of the key in the array (from 0), epoch.
SELECT wanted.place - 1, e.epoch
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS wanted
  JOIN ${read_model_epochs_table} AS e
    ON e.projection = ?1 AND e.read_model_key = wanted.id
