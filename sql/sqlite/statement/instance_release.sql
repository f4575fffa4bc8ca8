-- Everything that some instances hold is free.
-- ?1 instances
UPDATE ${partition_ownership_table}
   SET instance_id = NULL
 WHERE instance_id IN (SELECT value FROM json_each(?1))
