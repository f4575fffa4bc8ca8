-- How many messages of the capture topic match, at most ?3 of them.
-- ?1 after position  ?2 up to position  ?3 limit
-- ?4 event types or NULL  ?5 NULL: there are no aggregates here
-- ?6 partitions or NULL  ?7 key or NULL
SELECT count(*)
  FROM (SELECT 1
          FROM ${event_capture_records_table}
         WHERE global_position > ?1::bigint
           AND global_position <= ?2::bigint
           AND (?4::text[] IS NULL OR event_type = ANY (?4::text[]))
           AND ?5::text[] IS NULL
           AND (?6::bigint[] IS NULL OR partition_key = ANY (?6::bigint[]))
           AND (?7::text IS NULL OR message_key = ?7::text)
         ORDER BY global_position
         LIMIT ?3::bigint) AS matching
