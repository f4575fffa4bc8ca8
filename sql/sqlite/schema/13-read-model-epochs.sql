-- Which rebuild created each read model, 0 for none. A read model without a
-- row is never deleted by a rebuild.
CREATE TABLE IF NOT EXISTS ${read_model_epochs_table} (
    projection     TEXT    NOT NULL CHECK (length(projection) <= 255),
    read_model_key TEXT    NOT NULL CHECK (length(read_model_key) <= 255),
    epoch          INTEGER NOT NULL,
    PRIMARY KEY (projection, read_model_key)
) STRICT, WITHOUT ROWID;
