-- Which of some tables have grown much since the server looked at them, or are
-- large though it never did; by their place in the list.
-- not for: sqlite mysql
-- ?1 tables
SELECT want.place
  FROM unnest(?1::text[]) WITH ORDINALITY AS want (name, place)
  JOIN pg_catalog.pg_class AS c
    ON c.relname = lower(want.name)
   AND c.relnamespace = current_schema()::regnamespace
   AND c.relkind = 'r'
 WHERE pg_relation_size(c.oid) / current_setting('block_size')::bigint
       > greatest(64, 4 * c.relpages::bigint)
 ORDER BY want.place
