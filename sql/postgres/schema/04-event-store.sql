-- One event table. Applied once for the shared table and once for each
-- aggregate type that has its own.
--
-- A stream is aggregate type and id: the unique constraint also serves to
-- load it. Payload and metadata are JSON and not JSONB, which keeps every byte.
CREATE TABLE IF NOT EXISTS ${event_store_table} (
    id              UUID         NOT NULL,
    aggregate_id    VARCHAR(255) COLLATE "C" NOT NULL,
    aggregate_type  VARCHAR(255) COLLATE "C" NOT NULL,
    sequence_no     BIGINT       NOT NULL,
    event_type      VARCHAR(255) COLLATE "C" NOT NULL,
    event_revision  INTEGER      NOT NULL DEFAULT 0,
    payload         JSON         NOT NULL,
    metadata        JSON,
    occurred_at     TIMESTAMPTZ  NOT NULL DEFAULT now(),
    partition_key   SMALLINT     NOT NULL,
    global_position BIGINT       NOT NULL PRIMARY KEY,
    CONSTRAINT uq_${event_store_table}_id UNIQUE (id),
    CONSTRAINT uq_${event_store_table}_sequence
        UNIQUE (aggregate_type, aggregate_id, sequence_no)
);

CREATE INDEX IF NOT EXISTS idx_${event_store_table}_partition
    ON ${event_store_table} (partition_key, global_position);
