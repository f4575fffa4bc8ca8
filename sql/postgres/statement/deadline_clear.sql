-- Takes back all deadlines of some sagas. Before the table is analyzed the server
-- takes a type to have few of them and would rather read all; one by one it uses
-- the whole key.
-- ?1 saga type  ?2 saga ids
DELETE FROM ${saga_deadlines_table} AS d
 WHERE d.id = ANY (ARRAY(
       SELECT found.id
         FROM unnest(?2::text[]) AS gone (id)
        CROSS JOIN LATERAL (
              SELECT i.id
                FROM ${saga_deadlines_table} AS i
               WHERE i.saga_type = ?1::text AND i.saga_id = gone.id
              OFFSET 0) AS found))
