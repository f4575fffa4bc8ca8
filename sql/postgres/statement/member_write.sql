-- An instance runs these consumers.
-- ?1 instance  ?2 consumers' types  ?3 their names
INSERT INTO ${partition_members_table} (consumer_type, consumer_name, instance_id)
SELECT c.type, c.name, ?1::text
  FROM unnest(?2::text[], ?3::text[]) AS c (type, name)
 ORDER BY c.type, c.name
    ON CONFLICT DO NOTHING
