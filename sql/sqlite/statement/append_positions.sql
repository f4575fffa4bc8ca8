-- Draws positions; the counter row stays locked until the transaction ends. For
-- another topic than the event store its own counter stands here.
-- ?1 how many
-- Gives runs of positions, rising: the first of the run, how many.
UPDATE ${event_store_global_position_table}
   SET val = val + ?1
 WHERE id = 1
RETURNING val - ?1 + 1, ?1
