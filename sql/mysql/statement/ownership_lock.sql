-- Locks those of some leases that stand as they were seen, and that the
-- instance may take: they are free, or whoever held them does not live. One
-- that somebody else has locked is left for the next time.
-- ?1 instance  ?2 consumers' types  ?3 their names  ?4 partitions
-- ?5 generations
-- Gives: place of the lease in the arrays (from 0).
SELECT STRAIGHT_JOIN t.place - 1
  FROM JSON_TABLE(?2, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS t
  JOIN JSON_TABLE(?3, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           word VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
               PATH '$')) AS c
    ON c.place = t.place
  JOIN JSON_TABLE(?4, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           number INT PATH '$')) AS p
    ON p.place = t.place
  JOIN JSON_TABLE(?5, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           number BIGINT PATH '$')) AS g
    ON g.place = t.place
  JOIN ${partition_ownership_table} AS o
    ON o.consumer_type = t.word AND o.consumer_name = c.word
   AND o.partition_no = p.number
 WHERE o.generation = g.number
   AND NOT (o.instance_id <=> ?1)
   AND NOT EXISTS (SELECT 1 FROM ${partition_instances_table} AS i
                    WHERE i.instance_id = o.instance_id
                      AND i.expires_at > UTC_TIMESTAMP(6))
   FOR UPDATE SKIP LOCKED
