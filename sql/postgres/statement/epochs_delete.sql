-- The epochs of read models that are gone; one written past the projection
-- has none. A join would let the server believe, before the table is analyzed,
-- that a projection has few of them, and read all.
-- ?1 projection  ?2 keys
DELETE FROM ${read_model_epochs_table}
 WHERE projection = ?1::text
   AND read_model_key = ANY (?2::text[])
