-- The keys that hold later messages back, and whether these lie dead, too; of
-- messages whose keys are not known, their partitions. What lies dead alone
-- holds nothing.
-- ?1 consumer id  ?2 source
SELECT resolved_key, unresolved,
       CASE WHEN unresolved THEN partition_no ELSE 0 END,
       MAX(CASE WHEN status = 'DEAD_LETTER_KEY' AND failure_reason IS NOT NULL
                THEN 1 ELSE 0 END)
  FROM ${consumer_undelivered_messages_table}
 WHERE consumer_id = ?1 AND source_name = ?2 AND status <> 'DEAD_LETTER'
 GROUP BY resolved_key, unresolved,
       CASE WHEN unresolved THEN partition_no ELSE 0 END
