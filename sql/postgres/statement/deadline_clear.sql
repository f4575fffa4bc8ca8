-- Takes back all deadlines of some sagas.
-- ?1 saga type  ?2 saga ids
DELETE FROM ${saga_deadlines_table} AS d
 USING unnest(?2::text[]) AS gone (id)
 WHERE d.saga_type = ?1::text AND d.saga_id = gone.id
