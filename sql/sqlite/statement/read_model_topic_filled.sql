-- Moves on how far a topic was filled: one row, or another host has filled it
-- meanwhile, or it was switched off.
-- ?1 topic  ?2 key it was filled to before, or NULL  ?3 key, or NULL
-- ?4 when the last read model was filled in, or NULL: there may be more
UPDATE ${read_model_topics_table}
   SET filled_through = ?3, filled_at = ?4
 WHERE topic = ?1
   AND filled_through IS ?2
   AND filled_at IS NULL
   AND switched_off_at IS NULL
