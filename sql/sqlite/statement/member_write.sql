-- An instance runs these consumers.
-- ?1 instance  ?2 consumers' types  ?3 their names
INSERT INTO ${partition_members_table} (consumer_type, consumer_name, instance_id)
SELECT t.value, n.value, ?1
  FROM json_each(?2) AS t
  JOIN json_each(?3) AS n ON n.key = t.key
 WHERE true
    ON CONFLICT DO NOTHING
