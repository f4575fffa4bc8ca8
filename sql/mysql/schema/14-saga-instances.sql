-- The state of each saga. Applied once for the shared table and once for each
-- saga that has its own.
CREATE TABLE IF NOT EXISTS ${saga_instances_table} (
    id           CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    saga_type    VARCHAR(255) NOT NULL,
    saga_id      VARCHAR(255) NOT NULL,
    state_json   LONGTEXT NOT NULL,
    version      BIGINT NOT NULL,
    completed_at DATETIME(6),
    CONSTRAINT uq_${saga_instances_table} UNIQUE (saga_type, saga_id),
    INDEX idx_${saga_instances_table}_completed_at (completed_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
