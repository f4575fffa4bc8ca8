-- An instance lets go of the leases of all consumers but these.
-- ?1 instance  ?2 consumers' types  ?3 their names
UPDATE ${partition_ownership_table}
   SET instance_id = NULL
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
