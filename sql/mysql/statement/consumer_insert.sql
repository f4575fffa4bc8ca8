-- ?1 id  ?2 type  ?3 name  ?4 now
INSERT INTO ${consumers_table} (id, consumer_type, consumer_name, state_since)
VALUES (?1, ?2, ?3, ?4)
    ON DUPLICATE KEY UPDATE id = ${consumers_table}.id
