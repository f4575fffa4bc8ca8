-- Messages that wait to be published, staged in the transaction of their
-- cause. status: pending, processing, published or parked.
--
-- hlc orders what is claimed by cause and effect over several writers. Rows of
-- writers that have no such clock leave it empty and go by created_at.
-- metadata, a JSON object, is what a message carries beside its columns.
CREATE TABLE IF NOT EXISTS ${outbox_table} (
    id               UUID         NOT NULL PRIMARY KEY,
    outbox_route     VARCHAR(255) COLLATE "C" NOT NULL,
    event_id         UUID         NOT NULL,
    event_type       VARCHAR(255) COLLATE "C" NOT NULL,
    tenant_id        UUID,
    execution_id     UUID,
    correlation_id   UUID,
    causation_id     UUID,
    occurred_at      TIMESTAMPTZ  NOT NULL,
    payload          JSON         NOT NULL,
    status           VARCHAR(16)  COLLATE "C" NOT NULL DEFAULT 'pending',
    created_at       TIMESTAMPTZ  NOT NULL,
    published_at     TIMESTAMPTZ,
    processing_at    TIMESTAMPTZ,
    last_error       VARCHAR(1000),
    attempts         INTEGER      NOT NULL DEFAULT 0,
    available_at     TIMESTAMPTZ  NOT NULL,
    ordering_key     VARCHAR(255) COLLATE "C",
    claim_token      UUID,
    claim_expires_at TIMESTAMPTZ,
    hlc              BIGINT,
    traceparent      VARCHAR(255) COLLATE "C",
    metadata         JSON,
    CONSTRAINT uq_${outbox_table} UNIQUE (event_id, outbox_route)
);

CREATE INDEX IF NOT EXISTS idx_${outbox_table}_claim
    ON ${outbox_table} (outbox_route, status, hlc, created_at, id);
