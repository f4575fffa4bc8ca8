-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table.
-- status: PENDING, FAILED (tried again at next_retry_at) or DEAD_LETTER.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             TEXT    NOT NULL PRIMARY KEY,
    saga_type      TEXT    NOT NULL CHECK (length(saga_type) <= 255),
    saga_id        TEXT    NOT NULL CHECK (length(saga_id) <= 255),
    name           TEXT    NOT NULL CHECK (length(name) <= 255),
    due_at         TEXT    NOT NULL,
    payload_json   TEXT,
    metadata_json  TEXT,
    partition_no   INTEGER NOT NULL,
    status         TEXT    NOT NULL DEFAULT 'PENDING'
        CHECK (length(status) <= 16),
    attempts       INTEGER NOT NULL DEFAULT 0,
    next_retry_at  TEXT,
    failure_reason TEXT    CHECK (length(failure_reason) <= 1000),
    CONSTRAINT uq_${saga_deadlines_table} UNIQUE (saga_type, saga_id, name)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_due_at
    ON ${saga_deadlines_table} (due_at);

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_partition
    ON ${saga_deadlines_table} (partition_no, due_at);
