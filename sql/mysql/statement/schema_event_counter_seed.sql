-- A counter that is there keeps its value.
INSERT INTO ${event_store_global_position_table} (id, val) VALUES (1, 0)
    ON DUPLICATE KEY UPDATE id = id
