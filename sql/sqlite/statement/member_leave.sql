-- Some instances run nothing any more.
-- ?1 instances
DELETE FROM ${partition_members_table}
 WHERE instance_id IN (SELECT value FROM json_each(?1))
