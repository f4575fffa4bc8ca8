-- Draws positions of the topic of a projection; its counter row stays locked
-- until the transaction ends. As append_positions does.
-- not for: postgres
-- ?1 topic  ?2 how many
-- Gives the first of them.
INSERT INTO ${read_model_capture_positions_table} (topic, val)
SELECT c.topic, c.val
  FROM ${read_model_capture_positions_table} AS c
 WHERE c.topic = ?1
   FOR UPDATE
    ON DUPLICATE KEY UPDATE
       val = ${read_model_capture_positions_table}.val + ?2
RETURNING val - ?2 + 1
