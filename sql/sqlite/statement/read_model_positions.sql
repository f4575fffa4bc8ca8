-- Draws positions of the topic of a projection; its counter row stays locked
-- until the transaction ends.
-- not for: postgres
-- ?1 topic  ?2 how many
-- Gives the first of them.
UPDATE ${read_model_capture_positions_table}
   SET val = val + ?2
 WHERE topic = ?1
RETURNING val - ?2 + 1
