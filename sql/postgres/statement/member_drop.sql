-- An instance runs nothing but these consumers any more.
-- ?1 instance  ?2 consumers' types  ?3 their names
DELETE FROM ${partition_members_table}
 WHERE instance_id = ?1::text
   AND (consumer_type, consumer_name) NOT IN (
        SELECT c.type, c.name
          FROM unnest(?2::text[], ?3::text[]) AS c (type, name))
