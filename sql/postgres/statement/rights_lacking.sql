-- The first right that the user lacks: its verb, the table, the user. Where
-- positions come from a sequence, to write is to draw from it.
-- ?1 what is wanted, a list of objects {name, verb}
-- not for: sqlite
SELECT CASE WHEN c.relkind = 'S' AND want.verb <> 'SELECT' THEN 'USAGE' ELSE want.verb END,
       c.relname::text, current_user::text
  FROM ROWS FROM (json_to_recordset(?1::json) AS (name text, verb text))
       WITH ORDINALITY AS want (name, verb, place)
  JOIN pg_catalog.pg_class AS c
    ON c.relname IN (want.name, lower(want.name))
   AND c.relnamespace = current_schema()::regnamespace
 WHERE NOT CASE
           WHEN c.relkind = 'S' THEN has_sequence_privilege(
               c.oid, CASE want.verb WHEN 'SELECT' THEN 'SELECT' ELSE 'USAGE' END)
           WHEN want.verb = 'DELETE' THEN has_table_privilege(c.oid, want.verb)
           ELSE has_any_column_privilege(c.oid, want.verb)
           END
 ORDER BY want.place
 LIMIT 1
