-- Those of some instances that have lapsed. The transaction holds the writer's
-- lock already.
-- ?1 instances
-- Gives: instance.
SELECT instance_id
  FROM ${partition_instances_table}
 WHERE instance_id IN (SELECT value FROM json_each(?1))
   AND (expires_at <= strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
        OR 2 * julianday(last_heartbeat) - julianday(expires_at) > julianday('now'))
 ORDER BY instance_id
