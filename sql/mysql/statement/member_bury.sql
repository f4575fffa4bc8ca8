-- Of some instances, those that have no row run nothing any more.
-- ?1 instances
DELETE m FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS these
  STRAIGHT_JOIN ${partition_members_table} AS m
    ON m.instance_id = these.id
  LEFT JOIN ${partition_instances_table} AS i
    ON i.instance_id = m.instance_id
 WHERE i.instance_id IS NULL
