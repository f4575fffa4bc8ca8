-- The position up to which each topic is read. pending_end was the last
-- position handed out when the transaction id pending_horizon was taken: it
-- becomes the mark once no transaction with a lower id is left that could
-- hold such a position.
CREATE TABLE IF NOT EXISTS ${high_water_mark_store_table} (
    topic_name       VARCHAR(255) COLLATE "C" NOT NULL PRIMARY KEY,
    high_water_mark  BIGINT       NOT NULL,
    pending_end      BIGINT,
    pending_horizon  BIGINT,
    topic_start      BIGINT       NOT NULL DEFAULT 0,
    lease_owner      VARCHAR(255) COLLATE "C",
    lease_expires_at TIMESTAMPTZ
);
