-- How many messages of a saga are in the outbox and were not sent. It reads all
-- that wait.
-- ?1 saga type  ?2 saga id
SELECT count(*)
  FROM ${outbox_table}
 WHERE status <> 'published'
   AND metadata ->> 'saga_type' = ?1::text
   AND metadata ->> 'saga_id' = ?2::text
