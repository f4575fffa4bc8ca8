-- Of some instances, those that have no row run nothing any more.
-- ?1 instances
DELETE FROM ${partition_members_table}
 WHERE instance_id IN (SELECT value FROM json_each(?1))
   AND instance_id NOT IN (SELECT i.instance_id
                             FROM ${partition_instances_table} AS i)
