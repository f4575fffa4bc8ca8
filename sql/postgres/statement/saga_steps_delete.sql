-- Deletes the history of sagas that are deleted.
-- ?1 ids of their rows
DELETE FROM ${saga_steps_table}
 WHERE instance_id = ANY (?1::text[]::uuid[])
