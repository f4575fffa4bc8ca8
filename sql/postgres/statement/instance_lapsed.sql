-- Locks those of some instances that have lapsed. One that somebody else has
-- locked may be saying just now that it lives.
-- ?1 instances
-- Gives: instance.
SELECT instance_id
  FROM ${partition_instances_table}
 WHERE instance_id = ANY (?1::text[])
   AND (expires_at <= clock_timestamp()
        OR last_heartbeat - (expires_at - last_heartbeat) > clock_timestamp())
 ORDER BY instance_id
   FOR UPDATE SKIP LOCKED
