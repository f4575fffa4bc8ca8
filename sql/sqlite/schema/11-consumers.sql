-- Consumers and what each of them has done. The other three tables reference
-- a consumer by its id, so its rows go in the order skipped, undelivered,
-- checkpoints, consumer.
CREATE TABLE IF NOT EXISTS ${consumers_table} (
    id                      TEXT NOT NULL PRIMARY KEY,
    consumer_type           TEXT NOT NULL CHECK (length(consumer_type) <= 32),
    consumer_name           TEXT NOT NULL CHECK (length(consumer_name) <= 255),
    state                   TEXT CHECK (length(state) <= 16),
    halt_reason             TEXT CHECK (length(halt_reason) <= 32),
    epoch                   INTEGER,
    declaration_fingerprint TEXT
        CHECK (length(declaration_fingerprint) <= 255),
    state_since             TEXT NOT NULL,
    CONSTRAINT uq_${consumers_table} UNIQUE (consumer_type, consumer_name)
) STRICT;

-- Every position up to `position` is done in this partition. NULL: the
-- consumer has read nothing yet, which holds the whole topic.
CREATE TABLE IF NOT EXISTS ${consumer_checkpoints_table} (
    consumer_id        TEXT    NOT NULL,
    source_name        TEXT    NOT NULL CHECK (length(source_name) <= 255),
    partition_no       INTEGER NOT NULL,
    position           INTEGER,
    incomplete_through INTEGER,
    replay_through     INTEGER,
    epoch              INTEGER,
    PRIMARY KEY (consumer_id, source_name, partition_no),
    CONSTRAINT fk_${consumer_checkpoints_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) STRICT, WITHOUT ROWID;

-- Messages that could not be applied yet, one row per message and key, each
-- with a copy of its message. key_hash stands for resolved_key in the unique
-- constraint only.
CREATE TABLE IF NOT EXISTS ${consumer_undelivered_messages_table} (
    id               TEXT    NOT NULL PRIMARY KEY,
    consumer_id      TEXT    NOT NULL,
    source_name      TEXT    NOT NULL CHECK (length(source_name) <= 255),
    resolved_key     TEXT    NOT NULL CHECK (length(resolved_key) <= 255),
    key_hash         INTEGER NOT NULL,
    message_position INTEGER NOT NULL,
    partition_no     INTEGER NOT NULL,
    status           TEXT    NOT NULL CHECK (length(status) <= 16),
    failure_count    INTEGER NOT NULL,
    next_retry_at    TEXT,
    failure_reason   TEXT    CHECK (length(failure_reason) <= 1000),
    recorded_at      TEXT    NOT NULL,
    unresolved       INTEGER NOT NULL CHECK (unresolved IN (0, 1)),
    message_copy     TEXT,
    CONSTRAINT uq_${consumer_undelivered_messages_table} UNIQUE
        (consumer_id, source_name, message_position, partition_no, key_hash),
    CONSTRAINT fk_${consumer_undelivered_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) STRICT;

-- Those that failed themselves: they hold their keys, and are few among those
-- that wait behind them.
CREATE INDEX IF NOT EXISTS idx_${consumer_undelivered_messages_table}_failed
    ON ${consumer_undelivered_messages_table} (consumer_id, source_name)
 WHERE failure_reason IS NOT NULL;

-- Messages that every instance passes over. The id is derived from consumer,
-- topic, partition, position and key, so that a repeated skip is one row.
CREATE TABLE IF NOT EXISTS ${consumer_skipped_messages_table} (
    id               TEXT    NOT NULL PRIMARY KEY,
    consumer_id      TEXT    NOT NULL,
    source_name      TEXT    NOT NULL CHECK (length(source_name) <= 255),
    partition_no     INTEGER NOT NULL,
    message_position INTEGER NOT NULL,
    resolved_key     TEXT    NOT NULL CHECK (length(resolved_key) <= 255),
    every_key        INTEGER NOT NULL CHECK (every_key IN (0, 1)),
    CONSTRAINT fk_${consumer_skipped_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${consumer_skipped_messages_table}_position
    ON ${consumer_skipped_messages_table}
       (consumer_id, source_name, message_position);
