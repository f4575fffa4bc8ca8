-- Locks the row of a projection, which its batches share: while it is held,
-- nobody applies for it.
-- ?1 projection
SELECT 1
  FROM ${consumers_table}
 WHERE consumer_type = 'projection' AND consumer_name = ?1
   FOR UPDATE
