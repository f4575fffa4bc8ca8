-- An instance lives from now on. One that was taken for dead has lost its row,
-- and writes it anew.
-- ?1 instance  ?2 name of its host or NULL  ?3 how long it lives, microseconds
INSERT INTO ${partition_instances_table}
       (instance_id, host_name, started_at, last_heartbeat, expires_at)
VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'),
        strftime('%Y-%m-%dT%H:%M:%f000Z', 'now',
               (?3 / 1000000.0) || ' seconds'))
    ON CONFLICT (instance_id) DO UPDATE
   SET last_heartbeat = excluded.last_heartbeat,
       expires_at = excluded.expires_at
