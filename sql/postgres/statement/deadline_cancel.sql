-- Takes back one deadline of each saga in a list; both lists have one order.
-- ?1 saga type  ?2 saga ids  ?3 names
DELETE FROM ${saga_deadlines_table} AS d
 USING unnest(?2::text[], ?3::text[]) AS gone (saga_id, name)
 WHERE d.saga_type = ?1::text AND d.saga_id = gone.saga_id
   AND d.name = gone.name
