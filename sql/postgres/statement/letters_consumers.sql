-- Which consumers have undelivered messages of which topics, and up to where.
-- ?1 consumer id, or NULL: of all
SELECT u.consumer_id::text, c.consumer_type, c.consumer_name, u.source_name,
       MAX(u.message_position)
  FROM ${consumer_undelivered_messages_table} u
  JOIN ${consumers_table} c ON c.id = u.consumer_id
 WHERE (?1::text IS NULL OR u.consumer_id = ?1::text::uuid)
 GROUP BY u.consumer_id, c.consumer_type, c.consumer_name, u.source_name
 ORDER BY c.consumer_name, c.consumer_type, u.consumer_id, u.source_name
