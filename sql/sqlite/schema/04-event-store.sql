-- One event table. Applied once for the shared table and once for each
-- aggregate type that has its own.
--
-- global_position is the row's own key (the rowid), which appends a quarter
-- faster and reads by position faster than a separate index. Positions come
-- from the counter, which only rises, so none is ever used twice. An insert
-- must always give one.
--
-- A stream is aggregate type and id: the unique constraint also serves to
-- load it.
CREATE TABLE IF NOT EXISTS ${event_store_table} (
    id              TEXT    NOT NULL,
    aggregate_id    TEXT    NOT NULL CHECK (length(aggregate_id) <= 255),
    aggregate_type  TEXT    NOT NULL CHECK (length(aggregate_type) <= 255),
    sequence_no     INTEGER NOT NULL,
    event_type      TEXT    NOT NULL CHECK (length(event_type) <= 255),
    event_revision  INTEGER NOT NULL DEFAULT 0,
    payload         TEXT    NOT NULL,
    metadata        TEXT,
    occurred_at     TEXT    NOT NULL
        DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    partition_key   INTEGER NOT NULL,
    global_position INTEGER NOT NULL PRIMARY KEY,
    CONSTRAINT uq_${event_store_table}_id UNIQUE (id),
    CONSTRAINT uq_${event_store_table}_sequence
        UNIQUE (aggregate_type, aggregate_id, sequence_no)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${event_store_table}_partition
    ON ${event_store_table} (partition_key, global_position);
