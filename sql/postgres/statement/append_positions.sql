-- Draws positions, one by one: other sessions draw at the same time. For
-- another topic than the event store its own sequence stands here.
-- ?1 how many
-- Gives runs of positions, rising: the first of the run, how many.
--
-- The condition gives the transaction its id before the first position is
-- drawn. Without it nextval runs in a transaction without an id, and the
-- high-water mark, which waits for ids, passes the position.
SELECT nextval('${event_store_global_position_table}'), 1::bigint
  FROM generate_series(1, ?1::bigint)
 WHERE pg_current_xact_id() IS NOT NULL
