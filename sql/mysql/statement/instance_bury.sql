-- Of some instances, those that have lapsed are no more.
-- ?1 instances
DELETE i FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS these
  STRAIGHT_JOIN ${partition_instances_table} AS i
    ON i.instance_id = these.id
 WHERE i.expires_at <= UTC_TIMESTAMP(6)
