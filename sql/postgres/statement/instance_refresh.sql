-- The heartbeat of some instances, which all live on for so long.
-- ?1 instances  ?2 how long they live, microseconds
UPDATE ${partition_instances_table} AS i
   SET last_heartbeat = n.at,
       expires_at = n.at + ?2::bigint * interval '1 microsecond'
  FROM (SELECT clock_timestamp()) AS n (at)
 WHERE i.instance_id = ANY (?1::text[])
