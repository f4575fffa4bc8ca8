-- ?1 partition count. A count that is there stays.
INSERT INTO ${partition_metadata_table} (id, partitions)
VALUES (1, ?1::bigint)
    ON CONFLICT (id) DO NOTHING
