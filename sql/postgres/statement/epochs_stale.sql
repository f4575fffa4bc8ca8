-- Read models that the rebuild has not made anew, in the order of keys.
-- ?1 projection  ?2 epoch of the rebuild  ?3 key to go on after  ?4 limit
SELECT read_model_key
  FROM ${read_model_epochs_table}
 WHERE projection = ?1::text AND epoch < ?2::bigint
   AND read_model_key > ?3::text
 ORDER BY read_model_key
 LIMIT ?4::bigint
