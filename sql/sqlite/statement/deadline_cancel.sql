-- Takes back one deadline of each saga in a list; both lists have one order.
-- ?1 saga type  ?2 saga ids  ?3 names
DELETE FROM ${saga_deadlines_table}
 WHERE saga_type = ?1
   AND (saga_id, name) IN (SELECT s.value, n.value
                             FROM json_each(?2) AS s
                             JOIN json_each(?3) AS n ON n.key = s.key)
