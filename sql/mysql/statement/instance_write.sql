-- An instance lives from now on. One that was taken for dead has lost its row,
-- and writes it anew.
-- ?1 instance  ?2 name of its host or NULL  ?3 how long it lives, microseconds
INSERT INTO ${partition_instances_table}
       (instance_id, host_name, started_at, last_heartbeat, expires_at)
VALUES (?1, ?2, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL ?3 MICROSECOND)
    ON DUPLICATE KEY UPDATE
       last_heartbeat = VALUES(last_heartbeat), expires_at = VALUES(expires_at)
