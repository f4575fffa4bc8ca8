-- Compare-and-set: one row, or another host has moved the mark.
-- ?1 topic  ?2 the mark that was read  ?3 the new mark
UPDATE ${high_water_mark_store_table}
   SET high_water_mark = ?3
 WHERE topic_name = ?1
   AND high_water_mark = ?2
