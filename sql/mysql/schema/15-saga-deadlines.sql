-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table.
-- status: PENDING, FAILED (tried again at next_retry_at) or DEAD_LETTER.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    saga_type      VARCHAR(255) NOT NULL,
    saga_id        VARCHAR(255) NOT NULL,
    name           VARCHAR(255) NOT NULL,
    due_at         DATETIME(6) NOT NULL,
    payload_json   LONGTEXT,
    metadata_json  LONGTEXT,
    partition_no   INT NOT NULL,
    status         VARCHAR(16) NOT NULL DEFAULT 'PENDING',
    attempts       INT NOT NULL DEFAULT 0,
    next_retry_at  DATETIME(6),
    failure_reason VARCHAR(1000),
    CONSTRAINT uq_${saga_deadlines_table} UNIQUE (saga_type, saga_id, name),
    INDEX idx_${saga_deadlines_table}_due_at (due_at),
    INDEX idx_${saga_deadlines_table}_partition (partition_no, due_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
