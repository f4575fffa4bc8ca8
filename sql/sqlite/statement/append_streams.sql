-- Sequence number of the last event of each stream, NULL when it has none.
-- ?1 aggregate types  ?2 aggregate ids, one of each per stream
-- Gives: place of the stream in the arrays (from 0), sequence number.
WITH stream_types AS MATERIALIZED (
    SELECT key AS place, value AS aggregate_type FROM json_each(?1)
)
SELECT ids.key,
       (SELECT max(e.sequence_no)
          FROM ${event_store_table} AS e
         WHERE e.aggregate_type = stream_types.aggregate_type
           AND e.aggregate_id = ids.value)
  FROM json_each(?2) AS ids
 CROSS JOIN stream_types ON stream_types.place = ids.key
