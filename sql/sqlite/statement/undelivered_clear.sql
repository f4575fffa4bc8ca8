-- Of every topic: what lies in one that the consumer reads no more would never be
-- settled.
-- ?1 consumer id
DELETE FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1
