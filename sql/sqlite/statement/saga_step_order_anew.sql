-- The order of saga_step_order for a saga whose deadline is gone: somebody has
-- deleted the row.
-- ?1 saga type  ?2 saga id  ?3 name  ?4 id  ?5 order  ?6 now
-- ?7 hash of the saga id  ?8 metadata
INSERT INTO ${saga_deadlines_table}
       (id, saga_type, saga_id, name, instance_id, due_at, next_retry_at,
        payload_json, metadata_json, partition_no)
SELECT ?4, i.saga_type, i.saga_id, ?3, i.id, ?6, ?6,
       ?5, ?8, ?7 % m.partitions
  FROM ${saga_instances_table} i, ${partition_metadata_table} m
 WHERE i.saga_type = ?1 AND i.saga_id = ?2 AND m.id = 1
