-- Makes the leases of partitions 0 to ?3 - 1 where they are missing, free.
-- ?1 consumers' types  ?2 their names  ?3 number of partitions
INSERT INTO ${partition_ownership_table} (consumer_type, consumer_name, partition_no)
WITH RECURSIVE numbers (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?3
)
SELECT t.word, c.word, numbers.n
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS t
  JOIN JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS c
    ON c.place = t.place
 CROSS JOIN numbers
 ORDER BY t.word, c.word, numbers.n
    ON DUPLICATE KEY UPDATE
       generation = ${partition_ownership_table}.generation
