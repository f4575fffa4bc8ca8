-- The partitions of a consumer that an instance holds, in their order, locked
-- until the transaction ends.
-- ?1 consumer type  ?2 consumer name  ?3 instance id
SELECT partition_no
  FROM ${partition_ownership_table}
 WHERE consumer_type = ?1 AND consumer_name = ?2
   AND instance_id = ?3
 ORDER BY partition_no
   FOR UPDATE
