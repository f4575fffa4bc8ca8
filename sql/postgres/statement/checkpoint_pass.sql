-- Moves the checkpoints of some partitions of a consumer's read of a source
-- from one position to another, if nothing has happened besides: all stand
-- there, the leases are held under these generations, the consumer runs in that
-- epoch, messages are undelivered in these partitions or not as the caller has
-- it, none of them lies in between, and none is skipped. Else it moves none, and
-- the caller, who expects every one to move, looks. All are locked by
-- checkpoint_take.
-- not for: sqlite mysql
-- ?1 consumer id  ?2 source  ?3 partitions  ?4 generations  ?5 instance
-- ?6 from position  ?7 to position  ?8 epoch
-- ?9 whether messages are undelivered  ?10 whether it has a topic that is on
UPDATE ${consumer_checkpoints_table} AS k
   SET position = ?7::bigint
  FROM ${consumers_table} AS c
 CROSS JOIN unnest(?3::bigint[], ?4::bigint[])
            AS mine (partition_no, generation)
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = c.consumer_type AND o.consumer_name = c.consumer_name
   AND o.partition_no = mine.partition_no
   AND o.generation = mine.generation
   AND o.instance_id = ?5::text
 WHERE k.consumer_id = ?1::text::uuid AND k.source_name = ?2::text
   AND k.partition_no = mine.partition_no
   AND coalesce(k.position, 0) = ?6::bigint
   AND c.id = k.consumer_id
   AND c.state IS NULL
   AND coalesce(c.epoch, 0) = ?8::bigint
   AND EXISTS (SELECT 1 FROM ${read_model_topics_table} AS t
                WHERE t.topic = c.consumer_name
                  AND c.consumer_type = 'projection'
                  AND t.switched_off_at IS NULL) = ?10::boolean
   AND EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                WHERE consumer_id = ?1::text::uuid
                  AND source_name = ?2::text
                  AND partition_no = ANY (?3::bigint[])) = ?9::boolean
   AND NOT EXISTS (SELECT 1 FROM ${consumer_undelivered_messages_table}
                    WHERE consumer_id = ?1::text::uuid
                      AND source_name = ?2::text
                      AND partition_no = ANY (?3::bigint[])
                      AND message_position > ?6::bigint
                      AND message_position <= ?7::bigint)
   AND NOT EXISTS (SELECT 1 FROM ${consumer_skipped_messages_table}
                    WHERE consumer_id = ?1::text::uuid
                      AND source_name = ?2::text)
