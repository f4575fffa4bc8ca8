-- How many events of each type lie in a stretch of one table, and where the
-- first of them is; looks at ?3 events at most.
-- ?1 after position  ?2 up to position  ?3 limit
SELECT event_type, aggregate_type, COUNT(*), MIN(global_position)
  FROM (SELECT event_type, aggregate_type, global_position
          FROM ${event_store_table}
         WHERE global_position > ?1
           AND global_position <= ?2
         ORDER BY global_position
         LIMIT ?3) AS ahead
 GROUP BY event_type, aggregate_type
