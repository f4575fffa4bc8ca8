-- The epochs of read models that are gone; one written past the projection
-- has none.
-- ?1 projection  ?2 keys
DELETE FROM ${read_model_epochs_table}
 WHERE projection = ?1
   AND read_model_key IN (SELECT value FROM json_each(?2))
