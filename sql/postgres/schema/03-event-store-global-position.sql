-- Positions of events, shared by all event tables. A position is drawn only
-- after the transaction has its transaction id: the high-water mark waits for
-- ids, and nextval alone does not assign one.
--
-- CACHE 1 is no matter of tuning. A larger cache makes last_value count
-- positions that a session hands out later, and the mark would pass them.
CREATE SEQUENCE IF NOT EXISTS ${event_store_global_position_table}
    START WITH 1 CACHE 1;
