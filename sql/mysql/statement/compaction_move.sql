-- How far a topic is compacted; only from where it was found, so that of two
-- hosts one goes on.
-- ?1 topic, with read-model: before it  ?2 where it was  ?3 how far it has come
UPDATE ${topic_compaction_table}
   SET compacted_through = ?3
 WHERE topic_name = ?1
   AND compacted_through = ?2
