-- Under which rebuild read models were made.
-- ?1 projection  ?2 keys
-- Gives: place of the key in the array (from 0), epoch. CROSS keeps the order
-- of the join: each key is looked up.
SELECT wanted.key, e.epoch
  FROM json_each(?2) AS wanted
 CROSS JOIN ${read_model_epochs_table} AS e
 WHERE e.projection = ?1 AND e.read_model_key = wanted.value
