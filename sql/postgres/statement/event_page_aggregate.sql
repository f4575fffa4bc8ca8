-- The same as event_page for one aggregate id, by way of its partition.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 aggregate types or NULL  ?6 partitions or NULL
-- ?7 aggregate id  ?8 its partition
SELECT global_position, id, aggregate_type, aggregate_id, sequence_no,
       event_type, event_revision, payload, metadata, occurred_at,
       partition_key
  FROM ${event_store_table}
 WHERE partition_key = ?8::bigint
   AND global_position > ?1::bigint
   AND global_position <= ?2::bigint
   AND aggregate_id = ?7::text
   AND (?4::text[] IS NULL OR event_type = ANY (?4::text[]))
   AND (?5::text[] IS NULL OR aggregate_type = ANY (?5::text[]))
   AND (?6::bigint[] IS NULL OR partition_key = ANY (?6::bigint[]))
