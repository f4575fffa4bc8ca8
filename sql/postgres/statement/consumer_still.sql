-- Whether a consumer still runs, in this epoch, with its topic on or off as it
-- was: asked by who holds some of its checkpoints, which whoever changes that has
-- to have held, too.
-- not for: sqlite mysql
-- ?1 consumer id  ?2 epoch  ?3 whether it has a topic that is on
SELECT 1
  FROM ${consumers_table}
 WHERE id = ?1::text::uuid AND state IS NULL
   AND coalesce(epoch, 0) = ?2::bigint
   AND EXISTS (SELECT 1 FROM ${read_model_topics_table} AS t
                WHERE t.topic = consumer_name
                  AND consumer_type = 'projection'
                  AND t.switched_off_at IS NULL) = ?3::boolean
