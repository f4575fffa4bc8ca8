-- How far each topic's superseded messages have been deleted. A topic has no
-- row before its first compaction.
CREATE TABLE IF NOT EXISTS ${topic_compaction_table} (
    topic_name        VARCHAR(255) NOT NULL PRIMARY KEY,
    compacted_through BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
