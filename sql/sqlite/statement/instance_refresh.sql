-- The heartbeat of some instances, which all live on for so long.
-- ?1 instances  ?2 how long they live, microseconds
UPDATE ${partition_instances_table}
   SET last_heartbeat = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'),
       expires_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now',
               (?2 / 1000000.0) || ' seconds')
 WHERE instance_id IN (SELECT value FROM json_each(?1))
