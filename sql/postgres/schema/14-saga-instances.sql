-- The state of each saga. Applied once for the shared table and once for each
-- saga that has its own.
CREATE TABLE IF NOT EXISTS ${saga_instances_table} (
    id           UUID         NOT NULL PRIMARY KEY,
    saga_type    VARCHAR(255) COLLATE "C" NOT NULL,
    saga_id      VARCHAR(255) COLLATE "C" NOT NULL,
    state_json   TEXT         NOT NULL,
    version      BIGINT       NOT NULL,
    completed_at TIMESTAMPTZ,
    CONSTRAINT uq_${saga_instances_table} UNIQUE (saga_type, saga_id)
);

-- Those whose retention runs.
CREATE INDEX IF NOT EXISTS idx_${saga_instances_table}_completed_at
    ON ${saga_instances_table} (completed_at)
 WHERE completed_at IS NOT NULL;
