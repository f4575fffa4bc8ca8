-- How far the topic's start may move over its oldest messages: up to the first
-- that is neither too old nor one too many, over ?3 messages at most. Gives the
-- start when that is the very first.
-- ?1 topic start  ?2 mark  ?3 messages
-- ?4 older than this is too old, or NULL  ?5 up to here are too many
SELECT coalesce(max(m.global_position), ?1::bigint)
  FROM (SELECT b.global_position,
               max(CASE WHEN b.global_position <= ?5::bigint THEN 0
                        WHEN b.occurred_at < ?4::timestamptz THEN 0
                        ELSE 1 END) OVER (ORDER BY b.global_position) AS kept
          FROM (SELECT global_position, occurred_at
                  FROM ${event_capture_records_table}
                 WHERE global_position > ?1::bigint
                   AND global_position <= ?2::bigint
                 ORDER BY global_position
                 LIMIT ?3::bigint) AS b) AS m
 WHERE m.kept = 0
