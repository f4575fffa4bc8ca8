-- The position up to which each topic is read. The two pending columns are
-- used only where positions come from a sequence.
CREATE TABLE IF NOT EXISTS ${high_water_mark_store_table} (
    topic_name       TEXT    NOT NULL PRIMARY KEY
        CHECK (length(topic_name) <= 255),
    high_water_mark  INTEGER NOT NULL,
    pending_end      INTEGER,
    pending_horizon  INTEGER,
    topic_start      INTEGER NOT NULL DEFAULT 0,
    lease_owner      TEXT    CHECK (length(lease_owner) <= 255),
    lease_expires_at TEXT
) STRICT, WITHOUT ROWID;
