-- Read models that the rebuild has not made anew although it has met them: their
-- messages failed, or wait. In the order of keys.
-- ?1 projection  ?2 epoch of the rebuild  ?3 key to go on after  ?4 limit
-- ?5 consumer id  ?6 source
SELECT DISTINCT u.resolved_key
  FROM ${consumer_undelivered_messages_table} AS u
  JOIN ${read_model_epochs_table} AS e
    ON e.projection = ?1 AND e.read_model_key = u.resolved_key
 WHERE u.consumer_id = ?5 AND u.source_name = ?6 AND NOT u.unresolved
   AND e.epoch < ?2 AND u.resolved_key > ?3
 ORDER BY u.resolved_key
 LIMIT ?4
