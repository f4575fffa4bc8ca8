-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table. A row that is set again
-- gets another id, so that what was read of it before cannot be fired.
-- instance_id is the id of the saga's row: whatever became of that, no deadline
-- fires on a later instance of the same saga id.
-- status: PENDING, FAILED (has failed, and is tried again) or DEAD_LETTER.
-- next_retry_at is when it is fired or tried again: due_at or later, NULL of a
-- dead letter. One index has all that is due, in the order in which it fires.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             TEXT    NOT NULL PRIMARY KEY,
    saga_type      TEXT    NOT NULL CHECK (length(saga_type) <= 255),
    saga_id        TEXT    NOT NULL CHECK (length(saga_id) <= 255),
    name           TEXT    NOT NULL CHECK (length(name) <= 255),
    instance_id    TEXT    NOT NULL,
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

CREATE INDEX IF NOT EXISTS idx_${saga_deadlines_table}_next
    ON ${saga_deadlines_table} (saga_type, next_retry_at, id, partition_no);
