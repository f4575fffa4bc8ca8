-- Gives locked leases to an instance. Their generations rise, which fences
-- whoever had them.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
-- The lists are put side by side by place: joined by their keys, which have no
-- index, they would be gone through again and again.
UPDATE ${partition_ownership_table} AS o
   SET instance_id = ?1, generation = o.generation + 1
  FROM json_each(?2) AS t
 WHERE o.consumer_type = t.value
   AND o.consumer_name = json_extract(?3, '$[' || t.key || ']')
   AND o.partition_no = json_extract(?4, '$[' || t.key || ']')
