-- An instance lets go of the leases of all consumers but these.
-- ?1 instance  ?2 consumers' types  ?3 their names
UPDATE ${partition_ownership_table}
   SET instance_id = NULL
 WHERE instance_id = ?1
   AND (consumer_type, consumer_name) NOT IN (
        SELECT t.value, c.value
          FROM json_each(?2) AS t
          JOIN json_each(?3) AS c ON c.key = t.key)
