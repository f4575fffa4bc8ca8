-- ?1 consumer id
DELETE FROM ${consumers_table} WHERE id = ?1
