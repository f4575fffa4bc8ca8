-- What became of each command that had an id, rejected ones included. Looked
-- up before deciding, so a repeated command gives the first outcome. outcome
-- is a JSON document.
CREATE TABLE IF NOT EXISTS ${command_results_table} (
    id             TEXT NOT NULL PRIMARY KEY,
    aggregate_type TEXT NOT NULL CHECK (length(aggregate_type) <= 255),
    aggregate_id   TEXT NOT NULL CHECK (length(aggregate_id) <= 255),
    name           TEXT NOT NULL CHECK (length(name) <= 255),
    outcome        TEXT NOT NULL,
    created_at     TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_${command_results_table}_created_at
    ON ${command_results_table} (created_at);
