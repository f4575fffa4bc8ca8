-- Positions of all topics of read models, shared by them.
CREATE SEQUENCE IF NOT EXISTS ${read_model_capture_positions_table}
    START WITH 1 CACHE 1;

-- One row per message of every topic: the state after an apply, or a
-- tombstone with the last state.
CREATE TABLE IF NOT EXISTS ${read_model_capture_records_table} (
    id                  UUID         NOT NULL PRIMARY KEY,
    topic               VARCHAR(255) COLLATE "C" NOT NULL,
    topic_position      BIGINT       NOT NULL,
    partition_key       SMALLINT     NOT NULL,
    read_model_key      VARCHAR(255) COLLATE "C" NOT NULL,
    read_model_type     VARCHAR(255) COLLATE "C" NOT NULL,
    read_model_revision INTEGER      NOT NULL DEFAULT 0,
    payload             TEXT         NOT NULL,
    metadata            TEXT,
    cascade_depth       INTEGER      NOT NULL,
    deleted             BOOLEAN      NOT NULL,
    occurred_at         TIMESTAMPTZ  NOT NULL,
    CONSTRAINT uq_${read_model_capture_records_table}_position
        UNIQUE (topic, topic_position)
);

CREATE INDEX IF NOT EXISTS idx_${read_model_capture_records_table}_partition
    ON ${read_model_capture_records_table}
       (topic, partition_key, topic_position);

CREATE INDEX IF NOT EXISTS idx_${read_model_capture_records_table}_key
    ON ${read_model_capture_records_table}
       (topic, read_model_key, topic_position);
