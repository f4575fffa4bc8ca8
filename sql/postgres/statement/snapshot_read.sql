-- The latest snapshot of one version.
-- ?1 aggregate type  ?2 aggregate id  ?3 snapshot version
SELECT sequence_no, payload
  FROM ${aggregate_snapshots_table}
 WHERE aggregate_type = ?1::text
   AND aggregate_id = ?2::text
   AND snapshot_version = ?3::integer
 ORDER BY sequence_no DESC
 LIMIT 1
