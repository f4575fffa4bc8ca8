-- Which version the host's tables have. One row, written by the host.
CREATE TABLE IF NOT EXISTS ${schema_version_table} (
    id           SMALLINT    NOT NULL PRIMARY KEY CHECK (id = 1),
    version      INTEGER     NOT NULL,
    installed_at TIMESTAMPTZ NOT NULL,
    upgraded_at  TIMESTAMPTZ
);
