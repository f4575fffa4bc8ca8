-- A rebuild begins: nothing is read yet, under the new epoch, and the replay
-- goes as far as the consumer had come.
-- ?1 consumer id  ?2 source  ?3 epoch  ?4 end of the replay, or NULL
UPDATE ${consumer_checkpoints_table}
   SET position = NULL, epoch = ?3::bigint, replay_through = ?4::bigint
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
