-- What the leases of an instance's consumers are judged by: who runs them and
-- lives, who holds which partition, and which instances have lapsed. One whose
-- heartbeat lies further ahead than it counts for has made it before the clock
-- went back: it makes another one, or is dead.
-- ?1 instance
-- Gives: 0 member, 1 lease, 2 lapsed instance; consumer's type and name;
-- partition; instance; generation; whether that instance lives; microseconds
-- that a member lives.
SELECT 0 AS kind, m.consumer_type, m.consumer_name, 0 AS partition_no,
       m.instance_id, 0 AS generation, TRUE AS live,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at) AS left_us
  FROM ${partition_members_table} AS mine
  JOIN ${partition_members_table} AS m
 USING (consumer_type, consumer_name)
  JOIN ${partition_instances_table} AS l
    ON l.instance_id = m.instance_id AND l.expires_at > UTC_TIMESTAMP(6)
 WHERE mine.instance_id = ?1
 UNION ALL
SELECT 1, o.consumer_type, o.consumer_name, o.partition_no, o.instance_id,
       o.generation, l.instance_id IS NOT NULL, 0
  FROM ${partition_members_table} AS mine
  JOIN ${partition_ownership_table} AS o
 USING (consumer_type, consumer_name)
  LEFT JOIN ${partition_instances_table} AS l
    ON l.instance_id = o.instance_id AND l.expires_at > UTC_TIMESTAMP(6)
 WHERE mine.instance_id = ?1
 UNION ALL
SELECT 2, '', '', 0, instance_id, 0, FALSE, 0
  FROM ${partition_instances_table}
 WHERE expires_at <= UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, last_heartbeat, expires_at)
       < TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), last_heartbeat)
 ORDER BY 1, 2, 3, 4, 5
