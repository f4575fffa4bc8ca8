-- When the version was loaded that so many newer ones follow.
-- ?1 name of the host  ?2 how many
SELECT loaded_at
  FROM ${script_versions_table}
 WHERE host_name = ?1
 ORDER BY loaded_at DESC
 LIMIT 1 OFFSET ?2
