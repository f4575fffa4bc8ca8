-- Which worker processes are alive.
CREATE TABLE IF NOT EXISTS ${partition_instances_table} (
    instance_id    VARCHAR(255) COLLATE "C" NOT NULL PRIMARY KEY,
    host_name      VARCHAR(255),
    started_at     TIMESTAMPTZ  NOT NULL,
    last_heartbeat TIMESTAMPTZ  NOT NULL,
    expires_at     TIMESTAMPTZ  NOT NULL
);

-- Which of them may apply each partition of a consumer. The generation rises
-- with every claim and take-over, and fences the former owner.
CREATE TABLE IF NOT EXISTS ${partition_ownership_table} (
    consumer_type VARCHAR(32)  COLLATE "C" NOT NULL,
    consumer_name VARCHAR(255) COLLATE "C" NOT NULL,
    partition_no  INTEGER      NOT NULL,
    instance_id   VARCHAR(255) COLLATE "C",
    generation    BIGINT       NOT NULL DEFAULT 0,
    PRIMARY KEY (consumer_type, consumer_name, partition_no)
);

CREATE INDEX IF NOT EXISTS idx_${partition_ownership_table}_instance_id
    ON ${partition_ownership_table} (instance_id);

-- Which consumers each of them runs.
CREATE TABLE IF NOT EXISTS ${partition_members_table} (
    consumer_type VARCHAR(32)  COLLATE "C" NOT NULL,
    consumer_name VARCHAR(255) COLLATE "C" NOT NULL,
    instance_id   VARCHAR(255) COLLATE "C" NOT NULL,
    PRIMARY KEY (consumer_type, consumer_name, instance_id)
);

CREATE INDEX IF NOT EXISTS idx_${partition_members_table}_instance_id
    ON ${partition_members_table} (instance_id);
