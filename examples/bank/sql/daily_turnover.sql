-- Written for every dialect. VARCHAR and not DATE: the day is a key, and keys
-- compare as text.
CREATE TABLE IF NOT EXISTS daily_turnover (
  day       VARCHAR(10) NOT NULL PRIMARY KEY,
  cents     BIGINT NOT NULL,
  movements BIGINT NOT NULL
);
