-- The topics that are on: no row, and applies append nothing. How far the read
-- models that were there before were filled in. One that was switched off again
-- keeps its row until its messages are deleted.
CREATE TABLE IF NOT EXISTS ${read_model_topics_table} (
    topic           VARCHAR(255) COLLATE "C" NOT NULL PRIMARY KEY,
    switched_on_at  TIMESTAMPTZ  NOT NULL,
    filled_through  VARCHAR(255) COLLATE "C",
    filled_at       TIMESTAMPTZ,
    switched_off_at TIMESTAMPTZ
);
