-- The partition count that the database was made with.
SELECT partitions FROM ${partition_metadata_table} WHERE id = 1
