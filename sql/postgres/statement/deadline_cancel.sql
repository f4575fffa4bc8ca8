-- Takes back one deadline of each saga in a list; both lists have one order. One by
-- one, as deadline_clear.
-- ?1 saga type  ?2 saga ids  ?3 names
DELETE FROM ${saga_deadlines_table} AS d
 WHERE d.id = ANY (ARRAY(
       SELECT found.id
         FROM unnest(?2::text[], ?3::text[]) AS gone (saga_id, name)
        CROSS JOIN LATERAL (
              SELECT i.id
                FROM ${saga_deadlines_table} AS i
               WHERE i.saga_type = ?1::text AND i.saga_id = gone.saga_id
                 AND i.name = gone.name
              OFFSET 0) AS found))
