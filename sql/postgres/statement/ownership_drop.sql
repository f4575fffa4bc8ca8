-- An instance lets go of the leases of all consumers but these.
-- ?1 instance  ?2 consumers' types  ?3 their names
UPDATE ${partition_ownership_table}
   SET instance_id = NULL
 WHERE instance_id = ?1::text
   AND (consumer_type, consumer_name) NOT IN (
        SELECT c.type, c.name
          FROM unnest(?2::text[], ?3::text[]) AS c (type, name))
