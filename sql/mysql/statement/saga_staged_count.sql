-- How many messages of a saga are in the outbox and were not sent. It reads all
-- that wait.
-- ?1 saga type  ?2 saga id
SELECT count(*)
  FROM ${outbox_table}
 WHERE status <> 'published'
   AND JSON_VALUE(metadata, '$.saga_type') = ?1
   AND JSON_VALUE(metadata, '$.saga_id') = ?2
