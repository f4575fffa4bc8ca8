-- Some instances run nothing any more.
-- ?1 instances
DELETE FROM ${partition_members_table}
 WHERE instance_id = ANY (?1::text[])
