-- Consumers and what each of them has done. The other three tables reference
-- a consumer by its id, so its rows go in the order skipped, undelivered,
-- checkpoints, consumer.
CREATE TABLE IF NOT EXISTS ${consumers_table} (
    id                      CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    consumer_type           VARCHAR(32) NOT NULL,
    consumer_name           VARCHAR(255) NOT NULL,
    state                   VARCHAR(16),
    halt_reason             VARCHAR(32),
    epoch                   BIGINT,
    declaration_fingerprint VARCHAR(255),
    state_since             DATETIME(6) NOT NULL,
    CONSTRAINT uq_${consumers_table} UNIQUE (consumer_type, consumer_name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- Every position up to `position` is done in this partition. NULL: the
-- consumer has read nothing yet, which holds the whole topic.
CREATE TABLE IF NOT EXISTS ${consumer_checkpoints_table} (
    consumer_id        CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_name        VARCHAR(255) NOT NULL,
    partition_no       INT NOT NULL,
    position           BIGINT,
    incomplete_through BIGINT,
    replay_through     BIGINT,
    epoch              BIGINT,
    PRIMARY KEY (consumer_id, source_name, partition_no),
    CONSTRAINT fk_${consumer_checkpoints_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- Messages that could not be applied yet, one row per message and key, each
-- with a copy of its message. key_hash stands for resolved_key in the unique
-- constraint only.
CREATE TABLE IF NOT EXISTS ${consumer_undelivered_messages_table} (
    id               CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    consumer_id      CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_name      VARCHAR(255) NOT NULL,
    resolved_key     VARCHAR(255) NOT NULL,
    key_hash         BIGINT NOT NULL,
    message_position BIGINT NOT NULL,
    partition_no     INT NOT NULL,
    status           VARCHAR(16) NOT NULL,
    failure_count    INT NOT NULL,
    next_retry_at    DATETIME(6),
    failure_reason   VARCHAR(1000),
    recorded_at      DATETIME(6) NOT NULL,
    unresolved       TINYINT(1) NOT NULL CHECK (unresolved IN (0, 1)),
    message_copy     LONGTEXT,
    CONSTRAINT uq_${consumer_undelivered_messages_table} UNIQUE
        (consumer_id, source_name, message_position, partition_no, key_hash),
    CONSTRAINT fk_${consumer_undelivered_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- Messages that every instance passes over. The id is derived from consumer,
-- topic, partition, position and key, so that a repeated skip is one row.
CREATE TABLE IF NOT EXISTS ${consumer_skipped_messages_table} (
    id               CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    consumer_id      CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_name      VARCHAR(255) NOT NULL,
    partition_no     INT NOT NULL,
    message_position BIGINT NOT NULL,
    resolved_key     VARCHAR(255) NOT NULL,
    every_key        TINYINT(1) NOT NULL CHECK (every_key IN (0, 1)),
    INDEX idx_${consumer_skipped_messages_table}_position
        (consumer_id, source_name, message_position),
    CONSTRAINT fk_${consumer_skipped_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
