-- The sagas of some ids. Before the table is analyzed the server takes a type
-- to have few of them and would rather read all; one by one it uses the whole
-- key.
-- ?1 saga type  ?2 saga ids
-- Gives: place of the id in the array (from 0), id, version, completed_at,
-- state.
SELECT wanted.n - 1, s.id, s.version, s.completed_at, s.state_json
  FROM unnest(?2::text[]) WITH ORDINALITY AS wanted (id, n)
 CROSS JOIN LATERAL (
       SELECT i.id, i.version, i.completed_at, i.state_json
         FROM ${saga_instances_table} AS i
        WHERE i.saga_type = ?1::text
          AND i.saga_id = wanted.id
       OFFSET 0) AS s
