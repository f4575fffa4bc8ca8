-- ?1 ids
DELETE FROM ${consumer_undelivered_messages_table}
 WHERE id IN (SELECT value FROM json_each(?1))
