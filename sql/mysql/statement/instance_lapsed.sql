-- Locks those of some instances that have lapsed. One that somebody else has
-- locked may be saying just now that it lives.
-- ?1 instances
-- Gives: instance.
SELECT STRAIGHT_JOIN i.instance_id
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS these
  JOIN ${partition_instances_table} AS i
    ON i.instance_id = these.id
 WHERE i.expires_at <= UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, i.last_heartbeat, i.expires_at)
       < TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), i.last_heartbeat)
   FOR UPDATE SKIP LOCKED
