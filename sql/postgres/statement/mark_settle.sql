-- The pending end is the mark: no transaction that could hold a position up to
-- it has the sequence locked.
-- not for: sqlite mysql
-- ?1 topic  ?2 the mark  ?3 the pending end  ?4 the pending horizon
UPDATE ${high_water_mark_store_table}
   SET high_water_mark = ?3::bigint, pending_end = NULL, pending_horizon = NULL
 WHERE topic_name = ?1::text
   AND high_water_mark = ?2::bigint
   AND pending_end = ?3::bigint
   AND pending_horizon = ?4::bigint
