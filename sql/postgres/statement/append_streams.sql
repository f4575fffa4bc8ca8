-- Sequence number of the last event of streams of one aggregate type, NULL
-- where there is none.
-- ?1 aggregate type  ?2 aggregate ids
-- Gives: place of the id in the array (from 0), sequence number.
SELECT ids.n - 1,
       (SELECT max(e.sequence_no)
          FROM ${event_store_table} AS e
         WHERE e.aggregate_type = ?1::text
           AND e.aggregate_id = ids.id)
  FROM unnest(?2::text[]) WITH ORDINALITY AS ids (id, n)
