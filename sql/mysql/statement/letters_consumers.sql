-- The consumers that have undelivered messages, in the order of locking.
SELECT DISTINCT consumer_id
  FROM ${consumer_undelivered_messages_table}
 ORDER BY consumer_id
