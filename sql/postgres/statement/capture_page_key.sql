-- The same as capture_page for one message key, by way of its own index.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 NULL: there are no aggregates here
-- ?6 partitions or NULL
-- ?7 key  ?8 its partition, which the index does not need
SELECT global_position, id, NULL::text, message_key, NULL::bigint,
       event_type, event_revision, payload, metadata, occurred_at,
       partition_key,
       (SELECT topic_start FROM ${high_water_mark_store_table}
         WHERE topic_name = 'event-capture')
  FROM ${event_capture_records_table}
 WHERE ?8::bigint IS NOT NULL
   AND global_position > ?1::bigint
   AND global_position <= ?2::bigint
   AND message_key = ?7::text
   AND (?4::text[] IS NULL OR event_type = ANY (?4::text[]))
   AND ?5::text[] IS NULL
   AND (?6::bigint[] IS NULL OR partition_key = ANY (?6::bigint[]))
