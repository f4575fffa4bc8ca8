-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table.
-- status: PENDING, FAILED (tried again at next_retry_at) or DEAD_LETTER.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             UUID          NOT NULL PRIMARY KEY,
    saga_type      VARCHAR(255)  COLLATE "C" NOT NULL,
    saga_id        VARCHAR(255)  COLLATE "C" NOT NULL,
    name           VARCHAR(255)  COLLATE "C" NOT NULL,
    due_at         TIMESTAMPTZ   NOT NULL,
    payload_json   TEXT,
    metadata_json  TEXT,
    partition_no   INTEGER       NOT NULL,
    status         VARCHAR(16)   COLLATE "C" NOT NULL DEFAULT 'PENDING',
    attempts       INTEGER       NOT NULL DEFAULT 0,
    next_retry_at  TIMESTAMPTZ,
    failure_reason VARCHAR(1000),
    CONSTRAINT uq_${saga_deadlines_table} UNIQUE (saga_type, saga_id, name)
);

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_due_at
    ON ${saga_deadlines_table} (due_at);

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_partition
    ON ${saga_deadlines_table} (partition_no, due_at);
