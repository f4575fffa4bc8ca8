-- Topics of read models. Each topic numbers its own positions: an apply holds
-- its topic's counter row until it commits.
CREATE TABLE IF NOT EXISTS ${read_model_capture_positions_table} (
    topic VARCHAR(255) NOT NULL PRIMARY KEY,
    val   BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- One row per message of every topic: the state after an apply, or a
-- tombstone with the last state.
CREATE TABLE IF NOT EXISTS ${read_model_capture_records_table} (
    id                  CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    topic               VARCHAR(255) NOT NULL,
    topic_position      BIGINT NOT NULL,
    partition_key       INT NOT NULL,
    read_model_key      VARCHAR(255) NOT NULL,
    read_model_type     VARCHAR(255) NOT NULL,
    read_model_revision INT NOT NULL DEFAULT 0,
    payload             LONGTEXT NOT NULL,
    metadata            LONGTEXT,
    cascade_depth       INT NOT NULL,
    deleted             TINYINT(1) NOT NULL CHECK (deleted IN (0, 1)),
    occurred_at         DATETIME(6) NOT NULL,
    CONSTRAINT uq_${read_model_capture_records_table}_position
        UNIQUE (topic, topic_position),
    INDEX idx_${read_model_capture_records_table}_partition
        (topic, partition_key, topic_position),
    INDEX idx_${read_model_capture_records_table}_key
        (topic, read_model_key, topic_position)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
