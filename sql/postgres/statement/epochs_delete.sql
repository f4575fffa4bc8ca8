-- The epochs of read models that are gone; one written past the projection
-- has none. Before the table is analyzed the server takes a projection to have
-- few of them and would rather read all; one by one it uses the whole key. The
-- rows stay where they are: whoever writes them holds the checkpoints.
-- ?1 projection  ?2 keys
DELETE FROM ${read_model_epochs_table}
 WHERE ctid = ANY (ARRAY(
           SELECT found.ctid
             FROM unnest(?2::text[]) AS gone (read_model_key)
            CROSS JOIN LATERAL (
                SELECT e.ctid
                  FROM ${read_model_epochs_table} AS e
                 WHERE e.projection = ?1::text
                   AND e.read_model_key = gone.read_model_key
                OFFSET 0) AS found))
