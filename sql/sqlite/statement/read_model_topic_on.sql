-- Switches the topic of a projection on; one that is on stays as it is.
-- ?1 topic  ?2 now
INSERT INTO ${read_model_topics_table} (topic, switched_on_at)
VALUES (?1, ?2)
    ON CONFLICT (topic) DO NOTHING
