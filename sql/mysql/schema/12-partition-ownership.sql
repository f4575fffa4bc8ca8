-- Which worker processes are alive.
CREATE TABLE IF NOT EXISTS ${partition_instances_table} (
    instance_id    VARCHAR(255) NOT NULL PRIMARY KEY,
    host_name      VARCHAR(255),
    started_at     DATETIME(6) NOT NULL,
    last_heartbeat DATETIME(6) NOT NULL,
    expires_at     DATETIME(6) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- Which of them may apply each partition of a consumer. The generation rises
-- with every claim and take-over, and fences the former owner.
CREATE TABLE IF NOT EXISTS ${partition_ownership_table} (
    consumer_type VARCHAR(32) NOT NULL,
    consumer_name VARCHAR(255) NOT NULL,
    partition_no  INT NOT NULL,
    instance_id   VARCHAR(255),
    generation    BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (consumer_type, consumer_name, partition_no),
    INDEX idx_${partition_ownership_table}_instance_id (instance_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;

-- Which consumers each of them runs.
CREATE TABLE IF NOT EXISTS ${partition_members_table} (
    consumer_type VARCHAR(32) NOT NULL,
    consumer_name VARCHAR(255) NOT NULL,
    instance_id   VARCHAR(255) NOT NULL,
    PRIMARY KEY (consumer_type, consumer_name, instance_id),
    INDEX idx_${partition_members_table}_instance_id (instance_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
