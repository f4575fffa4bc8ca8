-- The epochs of read models that are gone; one written past the projection
-- has none.
-- ?1 projection  ?2 keys
DELETE FROM ${read_model_epochs_table} AS e
 USING unnest(?2::text[]) AS gone (read_model_key)
 WHERE e.projection = ?1::text
   AND e.read_model_key = gone.read_model_key
