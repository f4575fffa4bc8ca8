-- The partition count N. One row, written by the host at its first start and
-- compared at every later one: a key's partition never changes.
CREATE TABLE IF NOT EXISTS ${partition_metadata_table} (
    id         SMALLINT NOT NULL PRIMARY KEY CHECK (id = 1),
    partitions INTEGER  NOT NULL CHECK (partitions > 0)
);
