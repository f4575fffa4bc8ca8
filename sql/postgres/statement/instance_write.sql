-- An instance lives from now on. One that was taken for dead has lost its row,
-- and writes it anew.
-- ?1 instance  ?2 name of its host or NULL  ?3 how long it lives, microseconds
INSERT INTO ${partition_instances_table}
       (instance_id, host_name, started_at, last_heartbeat, expires_at)
SELECT ?1::text, ?2::text, n.at, n.at, n.at + ?3::bigint * interval '1 microsecond'
  FROM (SELECT clock_timestamp()) AS n (at)
    ON CONFLICT (instance_id) DO UPDATE
   SET last_heartbeat = excluded.last_heartbeat,
       expires_at = excluded.expires_at
