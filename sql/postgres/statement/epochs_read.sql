-- Under which rebuild read models were made.
-- ?1 projection  ?2 keys
-- Gives: place of the key in the array (from 0), epoch.
SELECT wanted.n - 1, e.epoch
  FROM unnest(?2::text[]) WITH ORDINALITY AS wanted (id, n)
  JOIN ${read_model_epochs_table} AS e
    ON e.projection = ?1::text AND e.read_model_key = wanted.id
