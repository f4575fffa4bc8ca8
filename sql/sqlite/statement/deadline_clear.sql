-- Takes back all deadlines of some sagas.
-- ?1 saga type  ?2 saga ids
DELETE FROM ${saga_deadlines_table}
 WHERE saga_type = ?1 AND saga_id IN (SELECT value FROM json_each(?2))
