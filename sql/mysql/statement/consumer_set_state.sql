-- ?1 id  ?2 state  ?3 halt reason  ?4 now
UPDATE ${consumers_table}
   SET state = ?2, halt_reason = ?3, state_since = ?4
 WHERE id = ?1
