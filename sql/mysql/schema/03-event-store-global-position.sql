-- The last position handed out to an event, shared by all event tables. An
-- append raises it in its own transaction and holds the row until it ends, so
-- a rollback restores it and the positions have no gaps.
CREATE TABLE IF NOT EXISTS ${event_store_global_position_table} (
    id  TINYINT NOT NULL PRIMARY KEY CHECK (id = 1),
    val BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

INSERT INTO ${event_store_global_position_table} (id, val) VALUES (1, 0)
    ON DUPLICATE KEY UPDATE id = id;
