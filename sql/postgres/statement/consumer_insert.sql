-- ?1 id  ?2 type  ?3 name  ?4 now
INSERT INTO ${consumers_table} (id, consumer_type, consumer_name, state_since)
VALUES (?1::text::uuid, ?2::text, ?3::text, ?4::timestamptz)
    ON CONFLICT DO NOTHING
