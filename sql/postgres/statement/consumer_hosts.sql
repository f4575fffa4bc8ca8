-- How many live instances run a consumer.
-- ?1 consumer type  ?2 its name
SELECT COUNT(*)
  FROM ${partition_members_table} AS m
  JOIN ${partition_instances_table} AS i ON i.instance_id = m.instance_id
 WHERE m.consumer_type = ?1::text AND m.consumer_name = ?2::text
   AND i.expires_at > clock_timestamp()
