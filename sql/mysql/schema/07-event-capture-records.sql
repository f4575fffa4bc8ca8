-- The capture topic: domain events published outside the event store.
-- global_position is the primary key, as in an event table. Retention deletes
-- from the low end only, and the counter never falls.
CREATE TABLE IF NOT EXISTS ${event_capture_records_table} (
    id              CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    global_position BIGINT NOT NULL PRIMARY KEY,
    partition_key   INT NOT NULL,
    event_type      VARCHAR(255) NOT NULL,
    event_revision  INT NOT NULL DEFAULT 0,
    payload         LONGTEXT NOT NULL,
    metadata        LONGTEXT,
    occurred_at     DATETIME(6) NOT NULL,
    message_key     VARCHAR(255),
    CONSTRAINT uq_${event_capture_records_table}_id UNIQUE (id),
    INDEX idx_${event_capture_records_table}_partition
        (partition_key, global_position),
    INDEX idx_${event_capture_records_table}_key (message_key, global_position)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
