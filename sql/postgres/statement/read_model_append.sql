-- Appends messages to the topic of a projection in the order of the arrays. One
-- statement, so that it can go out with what it belongs to. The condition gives
-- the transaction its id before the first position is drawn, see
-- append_positions.
-- not for: sqlite mysql
-- ?1 topic  ?2 now  ?3 ids  ?4 partitions  ?5 keys  ?6 states
-- ?7 metadata or NULL each  ?8 depths of the cascade  ?9 deleted: 0 or 1
INSERT INTO ${read_model_capture_records_table}
       (id, topic, topic_position, partition_key, read_model_key,
        read_model_type, read_model_revision, payload, metadata, cascade_depth,
        deleted, occurred_at)
SELECT m.id::uuid, ?1::text, nextval('${read_model_capture_positions_table}'),
       m.partition_key, m.read_model_key, ?1::text, 0, m.payload, m.metadata,
       m.cascade_depth, m.deleted = 1, ?2::timestamptz
  FROM (SELECT *
          FROM unnest(?3::text[], ?4::bigint[], ?5::text[], ?6::text[],
                      ?7::text[], ?8::bigint[], ?9::bigint[])
               WITH ORDINALITY
               AS u (id, partition_key, read_model_key, payload, metadata,
                     cascade_depth, deleted, place)
         ORDER BY place) AS m
 WHERE pg_current_xact_id() IS NOT NULL
