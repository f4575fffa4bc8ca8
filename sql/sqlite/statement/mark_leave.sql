-- Whoever was to move marks leaves that to others.
-- ?1 who
UPDATE ${high_water_mark_store_table}
   SET lease_owner = NULL, lease_expires_at = NULL
 WHERE lease_owner = ?1
