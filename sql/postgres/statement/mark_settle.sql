-- The pending end is the mark: no transaction that could hold a position up to
-- it has the sequence locked. The lease comes with it.
-- A lease that ends in more than a minute is from before the clock went back.
-- not for: sqlite mysql
-- ?1 topic  ?2 the mark  ?3 the pending end  ?4 the pending horizon
-- ?5 who moves it, or NULL  ?6 how long others leave it to that one, microseconds
UPDATE ${high_water_mark_store_table}
   SET high_water_mark = ?3::bigint, pending_end = NULL, pending_horizon = NULL,
       lease_owner = ?5::text,
       lease_expires_at =
           CASE WHEN ?5::text IS NOT NULL
                THEN clock_timestamp() + ?6::bigint * interval '1 microsecond'
           END
 WHERE topic_name = ?1::text
   AND high_water_mark = ?2::bigint
   AND pending_end = ?3::bigint
   AND pending_horizon = ?4::bigint
   AND (lease_owner IS NULL OR lease_owner = ?5::text
        OR lease_expires_at <= clock_timestamp()
        OR lease_expires_at > clock_timestamp() + interval '60 seconds')
