-- Makes the leases of partitions 0 to ?3 - 1 where they are missing, free.
-- ?1 consumers' types  ?2 their names  ?3 number of partitions
WITH RECURSIVE numbers (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?3
)
INSERT INTO ${partition_ownership_table} (consumer_type, consumer_name, partition_no)
SELECT t.value, c.value, numbers.n
  FROM json_each(?1) AS t
  JOIN json_each(?2) AS c ON c.key = t.key
 CROSS JOIN numbers
 WHERE true
    ON CONFLICT DO NOTHING
