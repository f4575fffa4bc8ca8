-- An instance runs nothing but these consumers any more.
-- ?1 instance  ?2 consumers' types  ?3 their names
DELETE FROM ${partition_members_table}
 WHERE instance_id = ?1
   AND NOT EXISTS (
      SELECT 1
          FROM JSON_TABLE(?2, '$[*]' COLUMNS (
                   place FOR ORDINALITY,
                   word VARCHAR(32) CHARACTER SET utf8mb4
                       COLLATE utf8mb4_nopad_bin PATH '$')) AS t
          JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
                   place FOR ORDINALITY,
                   word VARCHAR(255) CHARACTER SET utf8mb4
                       COLLATE utf8mb4_nopad_bin PATH '$')) AS c
            ON c.place = t.place
         WHERE t.word = consumer_type AND c.word = consumer_name)
