-- ?1 consumer id  ?2 source
DELETE FROM ${consumer_skipped_messages_table}
 WHERE consumer_id = ?1::text::uuid AND source_name = ?2::text
