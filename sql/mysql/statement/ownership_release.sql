-- An instance lets go of some leases; what it has lost already stays.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
UPDATE JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS t
  STRAIGHT_JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS c
    ON c.place = t.place
  STRAIGHT_JOIN JSON_TABLE(?4, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           number INT PATH '$')) AS p
    ON p.place = t.place
  STRAIGHT_JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = t.word AND o.consumer_name = c.word
   AND o.partition_no = p.number
   SET o.instance_id = NULL
 WHERE o.instance_id = ?1
