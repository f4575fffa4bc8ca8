-- Which worker processes are alive.
CREATE TABLE IF NOT EXISTS ${partition_instances_table} (
    instance_id    TEXT NOT NULL PRIMARY KEY
        CHECK (length(instance_id) <= 255),
    host_name      TEXT CHECK (length(host_name) <= 255),
    started_at     TEXT NOT NULL,
    last_heartbeat TEXT NOT NULL,
    expires_at     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which of them may apply each partition of a consumer. The generation rises
-- with every claim and take-over, and fences the former owner.
CREATE TABLE IF NOT EXISTS ${partition_ownership_table} (
    consumer_type TEXT    NOT NULL CHECK (length(consumer_type) <= 32),
    consumer_name TEXT    NOT NULL CHECK (length(consumer_name) <= 255),
    partition_no  INTEGER NOT NULL,
    instance_id   TEXT    CHECK (length(instance_id) <= 255),
    generation    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (consumer_type, consumer_name, partition_no)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_${partition_ownership_table}_instance_id
    ON ${partition_ownership_table} (instance_id);

-- Which consumers each of them runs.
CREATE TABLE IF NOT EXISTS ${partition_members_table} (
    consumer_type TEXT NOT NULL CHECK (length(consumer_type) <= 32),
    consumer_name TEXT NOT NULL CHECK (length(consumer_name) <= 255),
    instance_id   TEXT NOT NULL CHECK (length(instance_id) <= 255),
    PRIMARY KEY (consumer_type, consumer_name, instance_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_${partition_members_table}_instance_id
    ON ${partition_members_table} (instance_id);
