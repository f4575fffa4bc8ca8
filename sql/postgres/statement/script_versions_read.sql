-- What hosts run and what they have refused, the newest first.
-- ?1 how many
SELECT host_id::text, host_name, version, outcome, loaded_at, seen_at, changes, error
  FROM ${script_versions_table}
 ORDER BY loaded_at DESC, id DESC
 LIMIT ?1::bigint
