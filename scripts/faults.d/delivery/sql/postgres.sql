-- notes: what is applied now. journal: all that ever was, with a row of
-- position 0 for each reset; rows are numbered in the order of their commits,
-- because the checkpoints of the consumer are held meanwhile.
CREATE TABLE IF NOT EXISTS notes (
  id        BIGSERIAL PRIMARY KEY,
  model_key VARCHAR(40) NOT NULL,
  n         BIGINT NOT NULL,
  position  BIGINT NOT NULL,
  attempt   BIGINT NOT NULL,
  replaying INT NOT NULL
);
CREATE TABLE IF NOT EXISTS journal (
  id        BIGSERIAL PRIMARY KEY,
  model_key VARCHAR(40) NOT NULL,
  n         BIGINT NOT NULL,
  position  BIGINT NOT NULL,
  attempt   BIGINT NOT NULL,
  replaying INT NOT NULL
);
