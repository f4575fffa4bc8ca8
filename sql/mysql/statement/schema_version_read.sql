-- The version of the tables that are there.
SELECT version FROM ${schema_version_table} WHERE id = 1
