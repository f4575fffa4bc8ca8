-- Deadlines of sagas. The worker that holds the partition of the saga's id
-- fires those that are due, so there is no lock table. A row that is set again
-- gets another id, so that what was read of it before cannot be fired.
-- instance_id is the id of the saga's row: whatever became of that, no deadline
-- fires on a later instance of the same saga id.
-- status: PENDING, FAILED (has failed, and is tried again) or DEAD_LETTER.
-- next_retry_at is when it is fired or tried again: due_at or later, NULL of a
-- dead letter. One index has all that is due, in the order in which it fires.
CREATE TABLE IF NOT EXISTS ${saga_deadlines_table} (
    id             CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    saga_type      VARCHAR(255) NOT NULL,
    saga_id        VARCHAR(255) NOT NULL,
    name           VARCHAR(255) NOT NULL,
    instance_id    CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    due_at         DATETIME(6) NOT NULL,
    payload_json   LONGTEXT,
    metadata_json  LONGTEXT,
    partition_no   INT NOT NULL,
    status         VARCHAR(16) NOT NULL DEFAULT 'PENDING',
    attempts       INT NOT NULL DEFAULT 0,
    next_retry_at  DATETIME(6),
    failure_reason VARCHAR(1000),
    CONSTRAINT uq_${saga_deadlines_table} UNIQUE (saga_type, saga_id, name),
    INDEX idx_${saga_deadlines_table}_due_at (due_at),
    INDEX idx_${saga_deadlines_table}_next (saga_type, next_retry_at, id, partition_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
