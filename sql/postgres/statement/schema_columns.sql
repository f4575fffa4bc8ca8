-- Every column of every table: one row each, table and column, and the
-- collation if it takes texts for equal whose bytes differ. Where positions
-- come from a sequence it stands here as the counter table would.
SELECT c.relname::text, a.attname::text,
       CASE WHEN NOT o.collisdeterministic THEN o.collname::text END
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_attribute AS a
    ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation
 WHERE c.relnamespace = current_schema()::regnamespace
   AND c.relkind IN ('r', 'p', 'v', 'f')
UNION ALL
SELECT c.relname::text, counter.name, NULL
  FROM pg_catalog.pg_class AS c,
       (VALUES ('id'), ('val'), ('topic')) AS counter (name)
 WHERE c.relnamespace = current_schema()::regnamespace
   AND c.relkind = 'S'
