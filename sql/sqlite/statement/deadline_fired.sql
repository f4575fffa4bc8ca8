-- ?1 ids
DELETE FROM ${saga_deadlines_table}
 WHERE id IN (SELECT value FROM json_each(?1))
