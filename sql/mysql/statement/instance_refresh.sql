-- The heartbeat of some instances, which all live on for so long.
-- ?1 instances  ?2 how long they live, microseconds
UPDATE JSON_TABLE(?1, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS these
  STRAIGHT_JOIN ${partition_instances_table} AS i
    ON i.instance_id = these.id
   SET i.last_heartbeat = UTC_TIMESTAMP(6),
       i.expires_at = UTC_TIMESTAMP(6) + INTERVAL ?2 MICROSECOND
