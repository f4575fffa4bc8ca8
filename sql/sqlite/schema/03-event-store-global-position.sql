-- The last position handed out to an event, shared by all event tables. An
-- append raises it in its own transaction, so a rollback restores it and the
-- positions have no gaps.
CREATE TABLE IF NOT EXISTS ${event_store_global_position_table} (
    id  INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    val INTEGER NOT NULL
) STRICT;

INSERT INTO ${event_store_global_position_table} (id, val) VALUES (1, 0)
    ON CONFLICT (id) DO NOTHING;
