-- Which rebuild created each read model, 0 for none. A read model without a
-- row is never deleted by a rebuild.
CREATE TABLE IF NOT EXISTS ${read_model_epochs_table} (
    projection     VARCHAR(255) NOT NULL,
    read_model_key VARCHAR(255) NOT NULL,
    epoch          BIGINT NOT NULL,
    PRIMARY KEY (projection, read_model_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
