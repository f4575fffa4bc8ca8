-- The last position handed out in the capture topic, numbered apart from the
-- event store's.
CREATE TABLE IF NOT EXISTS ${event_capture_global_position_table} (
    id  TINYINT NOT NULL PRIMARY KEY CHECK (id = 1),
    val BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

INSERT INTO ${event_capture_global_position_table} (id, val) VALUES (1, 0)
    ON DUPLICATE KEY UPDATE id = id;
