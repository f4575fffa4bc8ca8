-- A skip that is there already stays; one for every key goes before one for a
-- single key.
-- ?1 id  ?2 consumer id  ?3 source  ?4 partition  ?5 position  ?6 key
-- ?7 every key
INSERT INTO ${consumer_skipped_messages_table} AS s
       (id, consumer_id, source_name, partition_no, message_position,
        resolved_key, every_key)
VALUES (?1::text::uuid, ?2::text::uuid, ?3::text, ?4::bigint, ?5::bigint,
        ?6::text, ?7::boolean)
    ON CONFLICT (id) DO UPDATE
   SET every_key = s.every_key OR excluded.every_key
