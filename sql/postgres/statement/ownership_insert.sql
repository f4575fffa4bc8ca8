-- Makes the leases of partitions 0 to ?3 - 1 where they are missing, free.
-- ?1 consumers' types  ?2 their names  ?3 number of partitions
INSERT INTO ${partition_ownership_table} (consumer_type, consumer_name, partition_no)
SELECT c.type, c.name, n
  FROM unnest(?1::text[], ?2::text[]) AS c (type, name)
 CROSS JOIN generate_series(0, ?3::bigint - 1) AS n
 ORDER BY c.type, c.name, n
    ON CONFLICT DO NOTHING
