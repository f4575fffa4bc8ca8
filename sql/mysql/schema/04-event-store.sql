-- One event table. Applied once for the shared table and once for each
-- aggregate type that has its own.
--
-- global_position is the primary key, in whose order InnoDB keeps the rows:
-- appends go to the end and reads by position go straight on. Positions come
-- from the counter, which only rises, so none is ever used twice.
--
-- A stream is aggregate type and id: the unique constraint also serves to
-- load it.
CREATE TABLE IF NOT EXISTS ${event_store_table} (
    id              CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    aggregate_id    VARCHAR(255) NOT NULL,
    aggregate_type  VARCHAR(255) NOT NULL,
    sequence_no     BIGINT NOT NULL,
    event_type      VARCHAR(255) NOT NULL,
    event_revision  INT NOT NULL DEFAULT 0,
    payload         LONGTEXT NOT NULL,
    metadata        LONGTEXT,
    occurred_at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    partition_key   INT NOT NULL,
    global_position BIGINT NOT NULL PRIMARY KEY,
    CONSTRAINT uq_${event_store_table}_id UNIQUE (id),
    CONSTRAINT uq_${event_store_table}_sequence
        UNIQUE (aggregate_type, aggregate_id, sequence_no),
    INDEX idx_${event_store_table}_partition (partition_key, global_position)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
