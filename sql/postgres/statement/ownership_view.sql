-- What the leases of an instance's consumers are judged by: who runs them and
-- lives, who holds which partition, and which instances have lapsed. One whose
-- heartbeat lies further ahead than it counts for has made it before the clock
-- went back: it makes another one, or is dead.
-- ?1 instance
-- Gives: 0 member, 1 lease, 2 lapsed instance; consumer's type and name;
-- partition; instance; generation; whether that instance lives; microseconds
-- that a member lives.
WITH mine AS (
    SELECT consumer_type, consumer_name
      FROM ${partition_members_table}
     WHERE instance_id = ?1::text
), living AS MATERIALIZED (
    SELECT instance_id,
           (extract(epoch FROM expires_at - clock_timestamp())
            * 1000000)::bigint AS left_us
      FROM ${partition_instances_table}
     WHERE expires_at > clock_timestamp()
)
SELECT 0 AS kind, m.consumer_type, m.consumer_name, 0 AS partition_no,
       m.instance_id, 0::bigint AS generation, true AS live, l.left_us
  FROM mine
  JOIN ${partition_members_table} AS m
 USING (consumer_type, consumer_name)
  JOIN living AS l ON l.instance_id = m.instance_id
 UNION ALL
SELECT 1, o.consumer_type, o.consumer_name, o.partition_no, o.instance_id,
       o.generation, l.instance_id IS NOT NULL, 0
  FROM mine
  JOIN ${partition_ownership_table} AS o
 USING (consumer_type, consumer_name)
  LEFT JOIN living AS l ON l.instance_id = o.instance_id
 UNION ALL
SELECT 2, '', '', 0, instance_id, 0, false, 0
  FROM ${partition_instances_table}
 WHERE expires_at <= clock_timestamp()
    OR last_heartbeat - (expires_at - last_heartbeat) > clock_timestamp()
 ORDER BY 1, 2, 3, 4, 5
