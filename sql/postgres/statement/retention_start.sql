-- Everything up to it may be deleted from now on. It only rises.
-- ?1 topic  ?2 the new start
UPDATE ${high_water_mark_store_table}
   SET topic_start = ?2::bigint
 WHERE topic_name = ?1::text
   AND topic_start < ?2::bigint
