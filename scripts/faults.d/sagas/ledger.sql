CREATE TABLE IF NOT EXISTS entries (
  id           ${serial} PRIMARY KEY,
  thing        VARCHAR(32) NOT NULL,
  n            BIGINT NOT NULL,
  position     BIGINT NOT NULL,
  attempt      BIGINT NOT NULL,
  version      BIGINT NOT NULL,
  partition_no BIGINT NOT NULL,
  instance_id  VARCHAR(64),
  generation   BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS races (
  id       ${serial} PRIMARY KEY,
  thing    VARCHAR(32) NOT NULL,
  what     VARCHAR(16) NOT NULL,
  round    BIGINT NOT NULL,
  of_round BIGINT NOT NULL,
  due_us   BIGINT NOT NULL,
  noted_us BIGINT NOT NULL
);
