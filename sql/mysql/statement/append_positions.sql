-- Draws positions; the counter row stays locked until the transaction ends. For
-- another topic than the event store its own counter stands here.
-- ?1 how many
-- Gives runs of positions, rising: the first of the run, how many. The server
-- has no UPDATE ... RETURNING; an insert of the row that is there updates it,
-- and without one nothing is inserted.
INSERT INTO ${event_store_global_position_table} (id, val)
SELECT c.id, c.val
  FROM ${event_store_global_position_table} AS c
 WHERE c.id = 1
   FOR UPDATE
    ON DUPLICATE KEY UPDATE
       val = ${event_store_global_position_table}.val + ?1
RETURNING val - ?1 + 1, ?1
