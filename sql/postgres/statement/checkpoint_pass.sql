-- Moves every checkpoint of a consumer's read of a source from one position to
-- another, if nothing has happened besides: all stand there, the consumer
-- runs in that epoch, messages are undelivered or not as the caller has it, none
-- of them lies in between, and none is skipped. Else it moves none, and the caller, who expects every one to
-- move, looks. All are locked.
-- not for: sqlite mysql
-- ?1 consumer id  ?2 source  ?3 from position  ?4 to position  ?5 epoch
-- ?6 whether messages are undelivered
UPDATE ${consumer_checkpoints_table} AS k
   SET position = ?4::bigint
  FROM ${consumers_table} AS c
 WHERE k.consumer_id = ?1::text::uuid AND k.source_name = ?2::text
   AND coalesce(k.position, 0) = ?3::bigint
   AND c.id = k.consumer_id
   AND c.state IS NULL
   AND coalesce(c.epoch, 0) = ?5::bigint
   AND EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1::text::uuid
                  AND source_name = ?2::text) = ?6::boolean
   AND NOT EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                    WHERE consumer_id = ?1::text::uuid
                      AND source_name = ?2::text
                      AND message_position > ?3::bigint
                      AND message_position <= ?4::bigint)
   AND NOT EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                    WHERE consumer_id = ?1::text::uuid
                      AND source_name = ?2::text)
