-- Of some instances, those that have no row run nothing any more.
-- ?1 instances
DELETE FROM ${partition_members_table} AS m
 WHERE m.instance_id = ANY (?1::text[])
   AND NOT EXISTS (SELECT 1 FROM ${partition_instances_table} AS i
                    WHERE i.instance_id = m.instance_id)
