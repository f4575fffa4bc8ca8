-- One snapshot table. Applied once for the shared table and once for each
-- aggregate type that has its own. Snapshots only save time: losing them all
-- changes nothing.
CREATE TABLE IF NOT EXISTS ${aggregate_snapshots_table} (
    id               CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    aggregate_id     VARCHAR(255) NOT NULL,
    aggregate_type   VARCHAR(255) NOT NULL,
    sequence_no      BIGINT NOT NULL,
    snapshot_version INT NOT NULL DEFAULT 1,
    payload          LONGTEXT NOT NULL,
    created_at       DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    CONSTRAINT uq_${aggregate_snapshots_table}_sequence UNIQUE
        (aggregate_type, aggregate_id, snapshot_version, sequence_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
