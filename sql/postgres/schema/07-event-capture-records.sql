-- The capture topic: domain events published outside the event store.
CREATE TABLE IF NOT EXISTS ${event_capture_records_table} (
    id              UUID         NOT NULL,
    global_position BIGINT       NOT NULL PRIMARY KEY,
    partition_key   SMALLINT     NOT NULL,
    event_type      VARCHAR(255) COLLATE "C" NOT NULL,
    event_revision  INTEGER      NOT NULL DEFAULT 0,
    payload         JSON         NOT NULL,
    metadata        JSON,
    occurred_at     TIMESTAMPTZ  NOT NULL,
    message_key     VARCHAR(255) COLLATE "C",
    CONSTRAINT uq_${event_capture_records_table}_id UNIQUE (id)
);

CREATE INDEX IF NOT EXISTS idx_${event_capture_records_table}_partition
    ON ${event_capture_records_table} (partition_key, global_position);

CREATE INDEX IF NOT EXISTS idx_${event_capture_records_table}_key
    ON ${event_capture_records_table} (message_key, global_position);
