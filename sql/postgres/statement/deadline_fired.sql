-- ?1 ids
DELETE FROM ${saga_deadlines_table}
 WHERE id = ANY (?1::text[]::uuid[])
