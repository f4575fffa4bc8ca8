-- The capture topic: domain events published outside the event store.
-- global_position is the row's own key, as in an event table. Retention
-- deletes from the low end only, and the counter never falls.
CREATE TABLE IF NOT EXISTS ${event_capture_records_table} (
    id              TEXT    NOT NULL,
    global_position INTEGER NOT NULL PRIMARY KEY,
    partition_key   INTEGER NOT NULL,
    event_type      TEXT    NOT NULL CHECK (length(event_type) <= 255),
    event_revision  INTEGER NOT NULL DEFAULT 0,
    payload         TEXT    NOT NULL,
    metadata        TEXT,
    occurred_at     TEXT    NOT NULL,
    message_key     TEXT    CHECK (length(message_key) <= 255),
    CONSTRAINT uq_${event_capture_records_table}_id UNIQUE (id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${event_capture_records_table}_partition
    ON ${event_capture_records_table} (partition_key, global_position);

CREATE INDEX IF NOT EXISTS idx_${event_capture_records_table}_key
    ON ${event_capture_records_table} (message_key, global_position);
