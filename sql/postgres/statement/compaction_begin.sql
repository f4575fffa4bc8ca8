-- The first progress of a topic's compaction.
-- ?1 topic, with read-model: before it  ?2 how far it has come
INSERT INTO ${topic_compaction_table} (topic_name, compacted_through)
VALUES (?1::text, ?2::bigint)
