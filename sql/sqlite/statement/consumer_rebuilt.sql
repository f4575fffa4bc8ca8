-- The progress of a consumer is reset: it runs, under the new epoch.
-- ?1 id  ?2 epoch  ?3 now
UPDATE ${consumers_table}
   SET state = NULL, halt_reason = NULL, epoch = ?2,
       state_since = ?3
 WHERE id = ?1
