-- Which versions of the scripts the hosts have taken, and which they have
-- refused. The newest LIVE one of a host is what it runs while seen_at is not
-- long ago. NULL: the host has ended.
CREATE TABLE IF NOT EXISTS ${script_versions_table} (
    id        CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    host_id   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    host_name VARCHAR(255)  NOT NULL,
    version   VARCHAR(32)   NOT NULL,
    outcome   VARCHAR(16)   NOT NULL,
    loaded_at DATETIME(6)   NOT NULL,
    seen_at   DATETIME(6),
    changes   VARCHAR(4000) NOT NULL,
    error     VARCHAR(4000),
    INDEX idx_${script_versions_table}_host_name (host_name, loaded_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
