-- ?1 ids
DELETE FROM ${consumer_undelivered_messages_table} AS u
 USING unnest(?1::text[]) AS settled (id)
 WHERE u.id = settled.id::uuid
