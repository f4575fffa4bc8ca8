-- The sagas of some ids. CROSS keeps the order of the join: each id is looked
-- up.
-- ?1 saga type  ?2 saga ids
-- Gives: place of the id in the array (from 0), id, version, completed_at,
-- state.
SELECT wanted.key, s.id, s.version, s.completed_at, s.state_json
  FROM json_each(?2) AS wanted
 CROSS JOIN ${saga_instances_table} AS s
 WHERE s.saga_type = ?1 AND s.saga_id = wanted.value
