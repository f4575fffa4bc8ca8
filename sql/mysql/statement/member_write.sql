-- An instance runs these consumers.
-- ?1 instance  ?2 consumers' types  ?3 their names
INSERT INTO ${partition_members_table} (consumer_type, consumer_name, instance_id)
SELECT t.word, n.word, ?1
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS t
  JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS n
    ON n.place = t.place
    ON DUPLICATE KEY UPDATE
       instance_id = ${partition_members_table}.instance_id
