-- ?1 type  ?2 name
SELECT id, state, halt_reason, epoch, state_since,
       declaration_fingerprint
  FROM ${consumers_table}
 WHERE consumer_type = ?1 AND consumer_name = ?2
