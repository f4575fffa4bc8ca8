-- The last position handed out in the capture topic, numbered apart from the
-- event store's.
CREATE TABLE IF NOT EXISTS ${event_capture_global_position_table} (
    id  INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    val INTEGER NOT NULL
) STRICT;

INSERT INTO ${event_capture_global_position_table} (id, val) VALUES (1, 0)
    ON CONFLICT (id) DO NOTHING;
