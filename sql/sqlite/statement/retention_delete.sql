-- Deletes messages that lie below the topic's start, the oldest first.
-- ?1 after position  ?2 up to position  ?3 messages at most
DELETE FROM ${event_capture_records_table}
 WHERE global_position IN (
           SELECT global_position
             FROM ${event_capture_records_table}
            WHERE global_position > ?1
              AND global_position <= ?2
            ORDER BY global_position
            LIMIT ?3)
