-- The state of each saga. Applied once for the shared table and once for each
-- saga that has its own.
CREATE TABLE IF NOT EXISTS ${saga_instances_table} (
    id           TEXT    NOT NULL PRIMARY KEY,
    saga_type    TEXT    NOT NULL CHECK (length(saga_type) <= 255),
    saga_id      TEXT    NOT NULL CHECK (length(saga_id) <= 255),
    state_json   TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    completed_at TEXT,
    CONSTRAINT uq_${saga_instances_table} UNIQUE (saga_type, saga_id)
) STRICT;

-- Those whose retention runs.
CREATE INDEX IF NOT EXISTS idx_${saga_instances_table}_completed_at
    ON ${saga_instances_table} (completed_at)
 WHERE completed_at IS NOT NULL;
