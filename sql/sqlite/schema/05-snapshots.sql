-- One snapshot table. Applied once for the shared table and once for each
-- aggregate type that has its own. Snapshots only save time: losing them all
-- changes nothing.
CREATE TABLE IF NOT EXISTS ${aggregate_snapshots_table} (
    id               TEXT    NOT NULL PRIMARY KEY,
    aggregate_id     TEXT    NOT NULL CHECK (length(aggregate_id) <= 255),
    aggregate_type   TEXT    NOT NULL CHECK (length(aggregate_type) <= 255),
    sequence_no      INTEGER NOT NULL,
    snapshot_version INTEGER NOT NULL DEFAULT 1,
    payload          TEXT    NOT NULL,
    created_at       TEXT    NOT NULL
        DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    CONSTRAINT uq_${aggregate_snapshots_table}_sequence UNIQUE
        (aggregate_type, aggregate_id, snapshot_version, sequence_no)
) STRICT;
