-- Which version the host's tables have. One row, written by the host.
CREATE TABLE IF NOT EXISTS ${schema_version_table} (
    id           TINYINT NOT NULL PRIMARY KEY CHECK (id = 1),
    version      INT NOT NULL,
    installed_at DATETIME(6) NOT NULL,
    upgraded_at  DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
