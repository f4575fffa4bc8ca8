-- Compare-and-set, and the lease with it: one row, or another host has moved
-- the mark, or is to move it.
-- A lease that ends in more than a minute is from before the clock went back.
-- ?1 topic  ?2 the mark that was read  ?3 the new mark
-- ?4 who moves it, or NULL  ?5 how long others leave it to that one, microseconds
UPDATE ${high_water_mark_store_table}
   SET high_water_mark = ?3::bigint, pending_end = NULL, pending_horizon = NULL,
       lease_owner = ?4::text,
       lease_expires_at =
           CASE WHEN ?4::text IS NOT NULL THEN clock_timestamp() + ?5::bigint * interval '1 microsecond' END
 WHERE topic_name = ?1::text
   AND high_water_mark = ?2::bigint
   AND (lease_owner IS NULL OR lease_owner = ?4::text
        OR lease_expires_at <= clock_timestamp()
        OR lease_expires_at > clock_timestamp() + interval '60 seconds')
