-- The topics that are on: no row, and applies append nothing. How far the read
-- models that were there before were filled in. One that was switched off again
-- keeps its row until its messages are deleted.
CREATE TABLE IF NOT EXISTS ${read_model_topics_table} (
    topic           TEXT NOT NULL PRIMARY KEY CHECK (length(topic) <= 255),
    switched_on_at  TEXT NOT NULL,
    filled_through  TEXT CHECK (length(filled_through) <= 255),
    filled_at       TEXT,
    switched_off_at TEXT
) STRICT, WITHOUT ROWID;
