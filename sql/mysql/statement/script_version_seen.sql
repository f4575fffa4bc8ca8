-- The version that a host runs, seen again; NULL: it runs it no more.
-- ?1 host  ?2 now or NULL
UPDATE ${script_versions_table}
   SET seen_at = ?2
 WHERE host_id = ?1 AND seen_at IS NOT NULL
