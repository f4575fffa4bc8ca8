-- Which versions of the scripts the hosts have taken, and which they have
-- refused. The newest LIVE one of a host is what it runs while seen_at is not
-- long ago. NULL: the host has ended.
CREATE TABLE IF NOT EXISTS ${script_versions_table} (
    id        UUID         NOT NULL PRIMARY KEY,
    host_id   UUID         NOT NULL,
    host_name VARCHAR(255) COLLATE "C" NOT NULL,
    version   VARCHAR(32)  COLLATE "C" NOT NULL,
    outcome   VARCHAR(16)  COLLATE "C" NOT NULL,
    loaded_at TIMESTAMPTZ  NOT NULL,
    seen_at   TIMESTAMPTZ,
    changes   VARCHAR(4000) NOT NULL,
    error     VARCHAR(4000)
);

CREATE INDEX IF NOT EXISTS idx_${script_versions_table}_host_name
    ON ${script_versions_table} (host_name, loaded_at);
