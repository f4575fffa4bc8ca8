-- Consumers and what each of them has done. The other three tables reference
-- a consumer by its id, so its rows go in the order skipped, undelivered,
-- checkpoints, consumer.
CREATE TABLE IF NOT EXISTS ${consumers_table} (
    id                      UUID         NOT NULL PRIMARY KEY,
    consumer_type           VARCHAR(32)  COLLATE "C" NOT NULL,
    consumer_name           VARCHAR(255) COLLATE "C" NOT NULL,
    state                   VARCHAR(16)  COLLATE "C",
    halt_reason             VARCHAR(32)  COLLATE "C",
    epoch                   BIGINT,
    declaration_fingerprint VARCHAR(255) COLLATE "C",
    state_since             TIMESTAMPTZ  NOT NULL,
    CONSTRAINT uq_${consumers_table} UNIQUE (consumer_type, consumer_name)
);

-- Every position up to `position` is done in this partition. NULL: the
-- consumer has read nothing yet, which holds the whole topic.
CREATE TABLE IF NOT EXISTS ${consumer_checkpoints_table} (
    consumer_id        UUID         NOT NULL,
    source_name        VARCHAR(255) COLLATE "C" NOT NULL,
    partition_no       INTEGER      NOT NULL,
    position           BIGINT,
    incomplete_through BIGINT,
    replay_through     BIGINT,
    epoch              BIGINT,
    PRIMARY KEY (consumer_id, source_name, partition_no),
    CONSTRAINT fk_${consumer_checkpoints_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
) WITH (fillfactor = 50);

-- Messages that could not be applied yet, one row per message and key, each
-- with a copy of its message. key_hash stands for resolved_key in the unique
-- constraint only.
CREATE TABLE IF NOT EXISTS ${consumer_undelivered_messages_table} (
    id               UUID          NOT NULL PRIMARY KEY,
    consumer_id      UUID          NOT NULL,
    source_name      VARCHAR(255)  COLLATE "C" NOT NULL,
    resolved_key     VARCHAR(255)  COLLATE "C" NOT NULL,
    key_hash         BIGINT        NOT NULL,
    message_position BIGINT        NOT NULL,
    partition_no     INTEGER       NOT NULL,
    status           VARCHAR(16)   COLLATE "C" NOT NULL,
    failure_count    INTEGER       NOT NULL,
    next_retry_at    TIMESTAMPTZ,
    failure_reason   VARCHAR(1000),
    recorded_at      TIMESTAMPTZ   NOT NULL,
    unresolved       BOOLEAN       NOT NULL,
    message_copy     TEXT,
    CONSTRAINT uq_${consumer_undelivered_messages_table} UNIQUE
        (consumer_id, source_name, message_position, partition_no, key_hash),
    CONSTRAINT fk_${consumer_undelivered_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
);

-- Those that failed themselves: they hold their keys, and are few among those
-- that wait behind them.
CREATE INDEX IF NOT EXISTS idx_${consumer_undelivered_messages_table}_failed
    ON ${consumer_undelivered_messages_table} (consumer_id, source_name)
 WHERE failure_reason IS NOT NULL;

-- Messages that every instance passes over. The id is derived from consumer,
-- topic, partition, position and key, so that a repeated skip is one row.
CREATE TABLE IF NOT EXISTS ${consumer_skipped_messages_table} (
    id               UUID         NOT NULL PRIMARY KEY,
    consumer_id      UUID         NOT NULL,
    source_name      VARCHAR(255) COLLATE "C" NOT NULL,
    partition_no     INTEGER      NOT NULL,
    message_position BIGINT       NOT NULL,
    resolved_key     VARCHAR(255) COLLATE "C" NOT NULL,
    every_key        BOOLEAN      NOT NULL,
    CONSTRAINT fk_${consumer_skipped_messages_table}_consumer
        FOREIGN KEY (consumer_id) REFERENCES ${consumers_table} (id)
);

CREATE INDEX IF NOT EXISTS idx_${consumer_skipped_messages_table}_position
    ON ${consumer_skipped_messages_table}
       (consumer_id, source_name, message_position);
