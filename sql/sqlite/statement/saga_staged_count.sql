-- How many messages of a saga are in the outbox and were not sent. It reads all
-- that wait.
-- ?1 saga type  ?2 saga id
SELECT count(*)
  FROM ${outbox_table}
 WHERE status <> 'published'
   AND CASE WHEN json_valid(metadata)
                THEN json_extract(metadata, '$.saga_type') = ?1
                 AND json_extract(metadata, '$.saga_id') = ?2 END
