-- What became of each command that had an id, rejected ones included. Looked
-- up before deciding, so a repeated command gives the first outcome. outcome
-- is a JSON document.
CREATE TABLE IF NOT EXISTS ${command_results_table} (
    id             CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id   VARCHAR(255) NOT NULL,
    name           VARCHAR(255) NOT NULL,
    outcome        LONGTEXT NOT NULL,
    created_at     DATETIME(6) NOT NULL,
    INDEX idx_${command_results_table}_created_at (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
