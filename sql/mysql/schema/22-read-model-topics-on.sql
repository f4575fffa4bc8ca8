-- The topics that are on: no row, and applies append nothing. How far the read
-- models that were there before were filled in. One that was switched off again
-- keeps its row until its messages are deleted.
CREATE TABLE IF NOT EXISTS ${read_model_topics_table} (
    topic           VARCHAR(255) NOT NULL PRIMARY KEY,
    switched_on_at  DATETIME(6) NOT NULL,
    filled_through  VARCHAR(255),
    filled_at       DATETIME(6),
    switched_off_at DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
