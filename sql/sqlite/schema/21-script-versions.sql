-- Which versions of the scripts the hosts have taken, and which they have
-- refused. The newest LIVE one of a host is what it runs while seen_at is not
-- long ago. NULL: the host has ended.
CREATE TABLE IF NOT EXISTS ${script_versions_table} (
    id        TEXT NOT NULL PRIMARY KEY,
    host_id   TEXT NOT NULL,
    host_name TEXT NOT NULL CHECK (length(host_name) <= 255),
    version   TEXT NOT NULL CHECK (length(version) <= 32),
    outcome   TEXT NOT NULL CHECK (length(outcome) <= 16),
    loaded_at TEXT NOT NULL,
    seen_at   TEXT,
    changes   TEXT NOT NULL CHECK (length(changes) <= 4000),
    error     TEXT CHECK (length(error) <= 4000)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_${script_versions_table}_host_name
    ON ${script_versions_table} (host_name, loaded_at);
