-- Positions of the capture topic, numbered apart from the event store's. What
-- is said of those holds for these.
CREATE SEQUENCE IF NOT EXISTS ${event_capture_global_position_table}
    START WITH 1 CACHE 1;
