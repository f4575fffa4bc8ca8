-- Read models that the rebuild has not made anew, in the order of keys.
-- ?1 projection  ?2 epoch of the rebuild  ?3 key to go on after  ?4 limit
SELECT read_model_key
  FROM ${read_model_epochs_table}
 WHERE projection = ?1 AND epoch < ?2
   AND read_model_key > ?3
 ORDER BY read_model_key
 LIMIT ?4
