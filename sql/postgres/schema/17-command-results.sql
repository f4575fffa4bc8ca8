-- What became of each command that had an id, rejected ones included. Looked
-- up before deciding, so a repeated command gives the first outcome. outcome
-- is a JSON document.
CREATE TABLE IF NOT EXISTS ${command_results_table} (
    id             UUID         NOT NULL PRIMARY KEY,
    aggregate_type VARCHAR(255) COLLATE "C" NOT NULL,
    aggregate_id   VARCHAR(255) COLLATE "C" NOT NULL,
    name           VARCHAR(255) COLLATE "C" NOT NULL,
    outcome        JSON         NOT NULL,
    created_at     TIMESTAMPTZ  NOT NULL
);

CREATE INDEX IF NOT EXISTS idx_${command_results_table}_created_at
    ON ${command_results_table} (created_at);
