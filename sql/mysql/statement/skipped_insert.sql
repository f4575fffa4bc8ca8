-- A skip that is there already stays; one for every key goes before one for a
-- single key.
-- ?1 id  ?2 consumer id  ?3 source  ?4 partition  ?5 position  ?6 key
-- ?7 every key
INSERT INTO ${consumer_skipped_messages_table}
       (id, consumer_id, source_name, partition_no, message_position,
        resolved_key, every_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON DUPLICATE KEY UPDATE every_key = greatest(every_key, VALUES(every_key))
