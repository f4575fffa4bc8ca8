-- An instance lets go of some leases; what it has lost already stays.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
-- The lists are put side by side by place: joined by their keys, which have no
-- index, they would be gone through again and again.
UPDATE ${partition_ownership_table} AS o
   SET instance_id = NULL
  FROM json_each(?2) AS t
 WHERE o.consumer_type = t.value
   AND o.consumer_name = json_extract(?3, '$[' || t.key || ']')
   AND o.partition_no = json_extract(?4, '$[' || t.key || ']') AND o.instance_id = ?1
