-- How many messages whose keys are not known hold partitions, and how many
-- partitions, by consumer; the position of the first of them, and its reason.
-- ?1 consumer id, or NULL: of all
SELECT b.consumer_id, b.messages, b.partitions, b.lowest,
       (SELECT MIN(u.failure_reason)
          FROM ${consumer_undelivered_messages_table} u
         WHERE u.consumer_id = b.consumer_id
           AND u.message_position = b.lowest AND u.unresolved
           AND u.status <> 'DEAD_LETTER')
  FROM (SELECT consumer_id, COUNT(DISTINCT message_position) AS messages,
               COUNT(DISTINCT partition_no) AS partitions,
               MIN(message_position) AS lowest
          FROM ${consumer_undelivered_messages_table}
         WHERE unresolved AND status <> 'DEAD_LETTER'
           AND failure_reason IS NOT NULL
           AND (?1 IS NULL OR consumer_id = ?1)
         GROUP BY consumer_id) b
