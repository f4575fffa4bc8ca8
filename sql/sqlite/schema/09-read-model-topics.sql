-- Topics of read models. Each topic numbers its own positions: an apply holds
-- its topic's counter row until it commits.
CREATE TABLE IF NOT EXISTS ${read_model_capture_positions_table} (
    topic TEXT    NOT NULL PRIMARY KEY CHECK (length(topic) <= 255),
    val   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per message of every topic: the state after an apply, or a
-- tombstone with the last state.
CREATE TABLE IF NOT EXISTS ${read_model_capture_records_table} (
    id                  TEXT    NOT NULL PRIMARY KEY,
    topic               TEXT    NOT NULL CHECK (length(topic) <= 255),
    topic_position      INTEGER NOT NULL,
    partition_key       INTEGER NOT NULL,
    read_model_key      TEXT    NOT NULL CHECK (length(read_model_key) <= 255),
    read_model_type     TEXT    NOT NULL CHECK (length(read_model_type) <= 255),
    read_model_revision INTEGER NOT NULL DEFAULT 0,
    payload             TEXT    NOT NULL,
    metadata            TEXT,
    cascade_depth       INTEGER NOT NULL,
    deleted             INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    occurred_at         TEXT    NOT NULL,
    CONSTRAINT uq_${read_model_capture_records_table}_position
        UNIQUE (topic, topic_position)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${read_model_capture_records_table}_partition
    ON ${read_model_capture_records_table}
       (topic, partition_key, topic_position);

CREATE INDEX IF NOT EXISTS idx_${read_model_capture_records_table}_key
    ON ${read_model_capture_records_table}
       (topic, read_model_key, topic_position);
