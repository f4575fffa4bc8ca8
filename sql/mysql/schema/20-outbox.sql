-- Messages that wait to be published, staged in the transaction of their
-- cause. status: pending, processing, published or parked.
--
-- hlc orders what is claimed by cause and effect over several writers. Rows of
-- writers that have no such clock leave it empty and go by created_at.
-- metadata, a JSON object, is what a message carries beside its columns.
CREATE TABLE IF NOT EXISTS ${outbox_table} (
    id               CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    outbox_route     VARCHAR(255) NOT NULL,
    event_id         CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event_type       VARCHAR(255) NOT NULL,
    tenant_id        CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    execution_id     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    correlation_id   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    causation_id     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    occurred_at      DATETIME(6) NOT NULL,
    payload          LONGTEXT NOT NULL,
    status           VARCHAR(16) NOT NULL DEFAULT 'pending',
    created_at       DATETIME(6) NOT NULL,
    published_at     DATETIME(6),
    processing_at    DATETIME(6),
    last_error       VARCHAR(1000),
    attempts         INT NOT NULL DEFAULT 0,
    available_at     DATETIME(6) NOT NULL,
    ordering_key     VARCHAR(255),
    claim_token      CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    claim_expires_at DATETIME(6),
    hlc              BIGINT,
    traceparent      VARCHAR(255),
    metadata         LONGTEXT,
    CONSTRAINT uq_${outbox_table} UNIQUE (event_id, outbox_route),
    INDEX idx_${outbox_table}_claim (outbox_route, status, hlc, created_at, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
