-- Snapshots that a new one replaces; a newer version is another program's.
-- ?1 aggregate type  ?2 aggregate id  ?3 snapshot version
DELETE FROM ${aggregate_snapshots_table}
 WHERE aggregate_type = ?1
   AND aggregate_id = ?2
   AND snapshot_version <= ?3
