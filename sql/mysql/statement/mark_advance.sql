-- Compare-and-set, and the lease with it: one row, or another host has moved
-- the mark, or is to move it.
-- A lease that ends in more than a minute is from before the clock went back.
-- ?1 topic  ?2 the mark that was read  ?3 the new mark
-- ?4 who moves it, or NULL  ?5 how long others leave it to that one, microseconds
UPDATE ${high_water_mark_store_table}
   SET high_water_mark = ?3,
       lease_owner = ?4,
       lease_expires_at =
           CASE WHEN ?4 IS NOT NULL THEN UTC_TIMESTAMP(6) + INTERVAL ?5 MICROSECOND END
 WHERE topic_name = ?1
   AND high_water_mark = ?2
   AND (lease_owner IS NULL OR lease_owner = ?4
        OR lease_expires_at <= UTC_TIMESTAMP(6)
        OR lease_expires_at > UTC_TIMESTAMP(6) + INTERVAL 60 SECOND)
