-- How far each topic's superseded messages have been deleted. A topic has no
-- row before its first compaction.
CREATE TABLE IF NOT EXISTS ${topic_compaction_table} (
    topic_name        VARCHAR(255) COLLATE "C" NOT NULL PRIMARY KEY,
    compacted_through BIGINT       NOT NULL
);
