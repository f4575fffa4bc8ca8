-- One snapshot table. Applied once for the shared table and once for each
-- aggregate type that has its own. Snapshots only save time: losing them all
-- changes nothing.
CREATE TABLE IF NOT EXISTS ${aggregate_snapshots_table} (
    id               UUID         NOT NULL PRIMARY KEY,
    aggregate_id     VARCHAR(255) COLLATE "C" NOT NULL,
    aggregate_type   VARCHAR(255) COLLATE "C" NOT NULL,
    sequence_no      BIGINT       NOT NULL,
    snapshot_version INTEGER      NOT NULL DEFAULT 1,
    payload          JSON         NOT NULL,
    created_at       TIMESTAMPTZ  NOT NULL DEFAULT now(),
    CONSTRAINT uq_${aggregate_snapshots_table}_sequence UNIQUE
        (aggregate_type, aggregate_id, snapshot_version, sequence_no)
);
