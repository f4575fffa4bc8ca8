-- Of some instances, those that have lapsed are no more.
-- ?1 instances
DELETE FROM ${partition_instances_table}
 WHERE instance_id = ANY (?1::text[]) AND expires_at <= clock_timestamp()
