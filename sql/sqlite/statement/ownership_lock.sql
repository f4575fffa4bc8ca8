-- Those of some leases that stand as they were seen, and that the instance may
-- take: they are free, or whoever held them does not live. The transaction
-- holds the writer's lock already.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
-- ?5 generations
-- Gives: place of the lease in the arrays (from 0).
-- The lists are put side by side by place: joined by their keys, which have no
-- index, they would be gone through again and again.
SELECT t.key
  FROM json_each(?2) AS t
 CROSS JOIN ${partition_ownership_table} AS o
 WHERE o.consumer_type = t.value
   AND o.consumer_name = json_extract(?3, '$[' || t.key || ']')
   AND o.partition_no = json_extract(?4, '$[' || t.key || ']')
   AND o.generation = json_extract(?5, '$[' || t.key || ']')
   AND o.instance_id IS NOT ?1
   AND NOT EXISTS (SELECT 1 FROM ${partition_instances_table} AS i
                    WHERE i.instance_id = o.instance_id
                      AND i.expires_at > strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
