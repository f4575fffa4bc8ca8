-- Of some instances, those that have lapsed are no more.
-- ?1 instances
DELETE FROM ${partition_instances_table}
 WHERE instance_id IN (SELECT value FROM json_each(?1))
   AND expires_at <= strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
