-- Everything that some instances hold is free.
-- ?1 instances
UPDATE JSON_TABLE(?1, '$[*]' COLUMNS (
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS these
  STRAIGHT_JOIN ${partition_ownership_table} AS o
    ON o.instance_id = these.id
   SET o.instance_id = NULL
