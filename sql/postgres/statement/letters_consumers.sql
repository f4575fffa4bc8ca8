-- The consumers that have undelivered messages, in the order of locking.
SELECT id::text
  FROM (SELECT DISTINCT consumer_id AS id FROM ${consumer_undelivered_messages_table}) AS these
 ORDER BY id
