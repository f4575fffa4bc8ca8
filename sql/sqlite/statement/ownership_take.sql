-- Gives locked leases to an instance. Their generations rise, which fences
-- whoever had them.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
UPDATE ${partition_ownership_table} AS o
   SET instance_id = ?1, generation = o.generation + 1
  FROM json_each(?2) AS t
  JOIN json_each(?3) AS c ON c.key = t.key
  JOIN json_each(?4) AS p ON p.key = t.key
 WHERE o.consumer_type = t.value AND o.consumer_name = c.value
   AND o.partition_no = p.value
