-- When the first deadline of each saga type in a list is due, in whatever
-- partition. One entry of the index is read per type.
-- ?1 saga types
-- Gives: place of the type in the array (from 0), when, or NULL.
SELECT types.n - 1,
       (SELECT d.next_retry_at
          FROM ${saga_deadlines_table} AS d
         WHERE d.saga_type = types.name AND d.next_retry_at IS NOT NULL
         ORDER BY d.next_retry_at, d.id
         LIMIT 1)
  FROM unnest(?1::text[]) WITH ORDINALITY AS types (name, n)
