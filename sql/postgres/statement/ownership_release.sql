-- An instance lets go of some leases; what it has lost already stays.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
UPDATE ${partition_ownership_table} AS o
   SET instance_id = NULL
  FROM unnest(?2::text[], ?3::text[], ?4::bigint[]) AS w (type, name, partition_no)
 WHERE o.consumer_type = w.type AND o.consumer_name = w.name
   AND o.partition_no = w.partition_no
   AND o.instance_id = ?1::text
