-- ?1 ids
DELETE FROM ${saga_deadlines_table} AS d
 USING unnest(?1::text[]) AS fired (id)
 WHERE d.id = fired.id::uuid
