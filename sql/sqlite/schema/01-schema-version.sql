-- Which version the host's tables have. One row, written by the host.
CREATE TABLE IF NOT EXISTS ${schema_version_table} (
    id           INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    version      INTEGER NOT NULL,
    installed_at TEXT    NOT NULL,
    upgraded_at  TEXT
) STRICT;
