CREATE TABLE IF NOT EXISTS ledger (
  position   BIGINT NOT NULL PRIMARY KEY,
  message_id VARCHAR(36) NOT NULL,
  host       VARCHAR(16) NOT NULL,
  applies    BIGINT NOT NULL
);
