-- Every consumer that has a row.
SELECT id::text, consumer_type, consumer_name, state, halt_reason, epoch,
       state_since, declaration_fingerprint
  FROM ${consumers_table}
 ORDER BY consumer_name, consumer_type
