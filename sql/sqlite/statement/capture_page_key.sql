-- The same as capture_page for one message key, by way of its own index.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 NULL: there are no aggregates here
-- ?6 partitions or NULL
-- ?7 key  ?8 its partition, which the index does not need
SELECT global_position, id, NULL, message_key, NULL,
       event_type, event_revision, payload, metadata, occurred_at,
       partition_key,
       (SELECT topic_start FROM ${high_water_mark_store_table}
         WHERE topic_name = 'event-capture')
  FROM ${event_capture_records_table}
 WHERE ?8 IS NOT NULL
   AND global_position > ?1
   AND global_position <= ?2
   AND message_key = ?7
   AND (?4 IS NULL OR event_type IN (SELECT value FROM json_each(?4)))
   AND ?5 IS NULL
   AND (?6 IS NULL OR partition_key IN (SELECT value FROM json_each(?6)))
