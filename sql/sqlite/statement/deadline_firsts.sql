-- When the first deadline of each saga type in a list is due, in whatever
-- partition. One entry of the index is read per type.
-- ?1 saga types
-- Gives: place of the type in the array (from 0), when, or NULL.
SELECT types.key,
       (SELECT d.next_retry_at
          FROM ${saga_deadlines_table} AS d
         WHERE d.saga_type = types.value AND d.next_retry_at IS NOT NULL
         ORDER BY d.next_retry_at, d.id
         LIMIT 1)
  FROM json_each(?1) AS types
