-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table. A row that is set again
-- gets another id, so that what was read of it before cannot be fired.
-- instance_id is the id of the saga's row: whatever became of that, no deadline
-- fires on a later instance of the same saga id.
-- status: PENDING, FAILED (has failed, and is tried again) or DEAD_LETTER.
-- next_retry_at is when it is fired or tried again: due_at or later, NULL of a
-- dead letter. One index has all that is due, in the order in which it fires.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             UUID          NOT NULL PRIMARY KEY,
    saga_type      VARCHAR(255)  COLLATE "C" NOT NULL,
    saga_id        VARCHAR(255)  COLLATE "C" NOT NULL,
    name           VARCHAR(255)  COLLATE "C" NOT NULL,
    instance_id    UUID          NOT NULL,
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

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_next
    ON ${saga_deadlines_table} (saga_type, next_retry_at, id, partition_no);
