-- ?1 id
DELETE FROM ${consumer_undelivered_messages_table} WHERE id = ?1
