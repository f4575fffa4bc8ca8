-- Messages of one topic of read models in the columns of event_page and, behind
-- them, the depth of the cascade; topic/event_page.c appends the order by
-- position and the limit.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 types or NULL  ?5 topic  ?6 partitions or NULL
SELECT topic_position AS global_position, id, NULL, read_model_key, NULL,
       CASE WHEN deleted THEN 'read-model.Deleted'
            ELSE 'read-model.Changed' END,
       read_model_revision, payload, metadata, occurred_at, partition_key,
       cascade_depth
  FROM ${read_model_capture_records_table}
 WHERE topic = ?5
   AND topic_position > ?1
   AND topic_position <= ?2
   AND (?4 IS NULL
        OR CASE WHEN deleted THEN 'read-model.Deleted'
             ELSE 'read-model.Changed' END IN (SELECT value FROM json_each(?4)))
   AND (?6 IS NULL OR partition_key IN (SELECT value FROM json_each(?6)))
