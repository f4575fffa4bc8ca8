-- Messages that wait to be published, staged in the transaction of their
-- cause. status: pending, processing, published or parked.
--
-- hlc orders what is claimed by cause and effect over several writers. Rows of
-- writers that have no such clock leave it empty and go by created_at.
-- metadata, a JSON object, is what a message carries beside its columns.
CREATE TABLE IF NOT EXISTS ${outbox_table} (
    id               TEXT    NOT NULL PRIMARY KEY,
    outbox_route     TEXT    NOT NULL CHECK (length(outbox_route) <= 255),
    event_id         TEXT    NOT NULL,
    event_type       TEXT    NOT NULL CHECK (length(event_type) <= 255),
    tenant_id        TEXT,
    execution_id     TEXT,
    correlation_id   TEXT,
    causation_id     TEXT,
    occurred_at      TEXT    NOT NULL,
    payload          TEXT    NOT NULL,
    status           TEXT    NOT NULL DEFAULT 'pending',
    created_at       TEXT    NOT NULL,
    published_at     TEXT,
    processing_at    TEXT,
    last_error       TEXT    CHECK (length(last_error) <= 1000),
    attempts         INTEGER NOT NULL DEFAULT 0,
    available_at     TEXT    NOT NULL,
    ordering_key     TEXT    CHECK (length(ordering_key) <= 255),
    claim_token      TEXT,
    claim_expires_at TEXT,
    hlc              INTEGER,
    traceparent      TEXT    CHECK (length(traceparent) <= 255),
    metadata         TEXT,
    CONSTRAINT uq_${outbox_table} UNIQUE (event_id, outbox_route)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${outbox_table}_claim
    ON ${outbox_table} (outbox_route, status, hlc, created_at, id);
