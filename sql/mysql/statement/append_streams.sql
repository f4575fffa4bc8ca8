-- Sequence number of the last event of streams of one aggregate type, NULL
-- where there is none. One entry of the index is read per stream; max() would
-- read them all.
-- ?1 aggregate type  ?2 aggregate ids
-- Gives: place of the id in the array (from 0), sequence number.
SELECT ids.place - 1,
       (SELECT e.sequence_no
          FROM ${event_store_table} AS e
         WHERE e.aggregate_type = ?1
           AND e.aggregate_id = ids.id
         ORDER BY e.sequence_no DESC
         LIMIT 1)
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS ids
