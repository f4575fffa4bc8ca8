-- The next messages of a topic, each with the one before it of the same key,
-- which it supersedes (NULL: there is none). Before them there is one of a key
-- at most, which is the key's first: that is found at once, where the last one
-- below a position would be looked for from the key's end.
-- ?1 topic  ?2 after position  ?3 up to position  ?4 messages at most
SELECT n.topic_position,
       coalesce(
           lag(n.topic_position) OVER (
               PARTITION BY n.read_model_key ORDER BY n.topic_position),
           nullif(
               (SELECT o.topic_position
                  FROM ${read_model_capture_records_table} AS o
                 WHERE o.topic = ?1
                   AND o.read_model_key = n.read_model_key
                 ORDER BY o.topic_position
                 LIMIT 1),
               n.topic_position)),
       n.occurred_at
  FROM (SELECT read_model_key, topic_position, occurred_at
          FROM ${read_model_capture_records_table}
               FORCE INDEX (uq_${read_model_capture_records_table}_position)
         WHERE topic = ?1
           AND topic_position > ?2
           AND topic_position <= ?3
         ORDER BY topic_position
         LIMIT ?4) AS n
 ORDER BY n.topic_position
