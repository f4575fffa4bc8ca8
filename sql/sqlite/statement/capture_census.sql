-- How many messages of each type lie in a stretch of the capture topic, and
-- where the first of them is; looks at ?3 messages at most.
-- ?1 after position  ?2 up to position  ?3 limit
SELECT event_type, NULL, COUNT(*), MIN(global_position)
  FROM (SELECT event_type, global_position
          FROM ${event_capture_records_table}
         WHERE global_position > ?1
           AND global_position <= ?2
         ORDER BY global_position
         LIMIT ?3) AS ahead
 GROUP BY event_type
