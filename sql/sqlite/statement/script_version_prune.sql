-- ?1 name of the host  ?2 the oldest time that is kept
DELETE FROM ${script_versions_table}
 WHERE host_name = ?1 AND loaded_at < ?2 AND seen_at IS NULL
