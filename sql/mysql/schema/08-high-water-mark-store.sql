-- The position up to which each topic is read. The two pending columns are
-- used only where positions come from a sequence.
CREATE TABLE IF NOT EXISTS ${high_water_mark_store_table} (
    topic_name       VARCHAR(255) NOT NULL PRIMARY KEY,
    high_water_mark  BIGINT NOT NULL,
    pending_end      BIGINT,
    pending_horizon  BIGINT,
    topic_start      BIGINT NOT NULL DEFAULT 0,
    lease_owner      VARCHAR(255),
    lease_expires_at DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
