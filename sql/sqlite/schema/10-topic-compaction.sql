-- How far each topic's superseded messages have been deleted. A topic has no
-- row before its first compaction.
CREATE TABLE IF NOT EXISTS ${topic_compaction_table} (
    topic_name        TEXT    NOT NULL PRIMARY KEY
        CHECK (length(topic_name) <= 255),
    compacted_through INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
