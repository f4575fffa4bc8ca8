-- Some instances are no more.
-- ?1 instances
DELETE FROM ${partition_instances_table}
 WHERE instance_id IN (SELECT value FROM json_each(?1))
